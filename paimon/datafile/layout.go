package datafile

import (
	"github.com/apache/arrow-go/v18/parquet"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// rootName is the message name every Paimon engine writes (FORMAT §7.4).
const rootName = "paimon_schema"

// fileSchema maps the physical columns to the Parquet message of FORMAT §7.4.
func fileSchema(fields []schema.Field) (*pqschema.GroupNode, error) {
	nodes := make(pqschema.FieldList, 0, len(fields))
	for _, f := range fields {
		n, err := fileNode(f.Name, f.Type, int32(f.ID), f.ID, 0)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	root, err := pqschema.NewGroupNode(rootName, parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		return nil, errs.Invalid("build the file schema: %v", err)
	}
	return root, nil
}

// fileNode builds one node. id is its own field id; near and depth are the f
// and d of the element id rule.
func fileNode(name string, t schema.Type, id int32, near, depth int) (pqschema.Node, error) {
	rep := parquet.Repetitions.Required
	if t.Nullable {
		rep = parquet.Repetitions.Optional
	}
	switch t.Kind {
	case schema.Array:
		elem, err := fileNode("element", *t.Elem, int32(schema.ElementID(near, depth+1)), near, depth+1)
		if err != nil {
			return nil, err
		}
		list, err := pqschema.NewGroupNode("list", parquet.Repetitions.Repeated, pqschema.FieldList{elem}, -1)
		if err != nil {
			return nil, nodeError(name, err)
		}
		n, err := pqschema.NewGroupNodeLogical(name, rep, pqschema.FieldList{list}, pqschema.NewListLogicalType(), id)
		return n, nodeError(name, err)
	case schema.Map, schema.Multiset:
		return mapNode(name, t, rep, id, near, depth)
	case schema.Row:
		nodes := make(pqschema.FieldList, 0, len(t.Fields))
		for _, f := range t.Fields {
			n, err := fileNode(f.Name, f.Type, int32(f.ID), f.ID, 0)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
		}
		if len(nodes) == 0 {
			return nil, errs.Unsupported("column %s: a ROW without fields cannot be stored in Parquet", name)
		}
		n, err := pqschema.NewGroupNode(name, rep, nodes, id)
		return n, nodeError(name, err)
	}
	return leafNode(name, t, rep, id)
}

func mapNode(name string, t schema.Type, rep parquet.Repetition, id int32, near, depth int) (pqschema.Node, error) {
	key, value := mapParts(t)
	// Map keys are REQUIRED even where the Paimon key type is nullable (FORMAT §7.4).
	key.Nullable = false
	k, err := fileNode("key", key, int32(schema.MapKeyID(near, depth+1)), near, depth+1)
	if err != nil {
		return nil, err
	}
	v, err := fileNode("value", value, int32(schema.ElementID(near, depth+1)), near, depth+1)
	if err != nil {
		return nil, err
	}
	entries, err := pqschema.NewGroupNode("key_value", parquet.Repetitions.Repeated, pqschema.FieldList{k, v}, -1)
	if err != nil {
		return nil, nodeError(name, err)
	}
	n, err := pqschema.NewGroupNodeLogical(name, rep, pqschema.FieldList{entries}, pqschema.MapLogicalType{}, id)
	return n, nodeError(name, err)
}

// mapParts returns the key and value types of a MAP, or of a MULTISET, which
// is stored as a map from element to a required count.
func mapParts(t schema.Type) (key, value schema.Type) {
	if t.Kind == schema.Multiset {
		return *t.Elem, schema.Type{Kind: schema.Int}
	}
	return *t.Key, *t.Elem
}

func leafNode(name string, t schema.Type, rep parquet.Repetition, id int32) (pqschema.Node, error) {
	phys, logical, width, err := leafLayout(t)
	if err != nil {
		return nil, errs.Unsupported("column %s: %v", name, err)
	}
	if logical == nil {
		n, err := pqschema.NewPrimitiveNode(name, rep, phys, id, int32(width))
		return n, nodeError(name, err)
	}
	n, err := pqschema.NewPrimitiveNodeLogical(name, rep, logical, phys, width, id)
	return n, nodeError(name, err)
}

// leafLayout is the table of FORMAT §7.4: physical type, annotation (nil for
// none) and the byte width of FIXED_LEN_BYTE_ARRAY.
func leafLayout(t schema.Type) (parquet.Type, pqschema.LogicalType, int, error) {
	switch t.Kind {
	case schema.Boolean:
		return parquet.Types.Boolean, nil, -1, nil
	case schema.TinyInt:
		return parquet.Types.Int32, pqschema.NewIntLogicalType(8, true), -1, nil
	case schema.SmallInt:
		return parquet.Types.Int32, pqschema.NewIntLogicalType(16, true), -1, nil
	case schema.Int:
		return parquet.Types.Int32, nil, -1, nil
	case schema.BigInt:
		return parquet.Types.Int64, nil, -1, nil
	case schema.Float:
		return parquet.Types.Float, nil, -1, nil
	case schema.Double:
		return parquet.Types.Double, nil, -1, nil
	case schema.Char, schema.VarChar:
		return parquet.Types.ByteArray, pqschema.StringLogicalType{}, -1, nil
	case schema.Binary, schema.VarBinary:
		return parquet.Types.ByteArray, nil, -1, nil
	case schema.Date:
		return parquet.Types.Int32, pqschema.DateLogicalType{}, -1, nil
	case schema.Time:
		return parquet.Types.Int32, pqschema.NewTimeLogicalType(true, pqschema.TimeUnitMillis), -1, nil
	case schema.Decimal:
		logical := pqschema.NewDecimalLogicalType(int32(t.Prec), int32(t.Scale))
		switch {
		case t.Prec <= 9:
			return parquet.Types.Int32, logical, -1, nil
		case t.Prec <= 18:
			return parquet.Types.Int64, logical, -1, nil
		}
		return parquet.Types.FixedLenByteArray, logical, decimalBytes(t.Prec), nil
	case schema.Timestamp, schema.TimestampLTZ:
		if t.Prec > 6 {
			return parquet.Types.Int96, nil, -1, nil
		}
		unit := pqschema.TimeUnitMicros
		if t.Prec <= 3 {
			unit = pqschema.TimeUnitMillis
		}
		return parquet.Types.Int64, pqschema.NewTimestampLogicalType(t.Kind == schema.TimestampLTZ, unit), -1, nil
	}
	return 0, nil, 0, errs.Unsupported("type %s in a Parquet data file", t)
}

// decimalBytes is the smallest n with 2^(8n-1) >= 10^p (FORMAT §7.4).
func decimalBytes(p int) int { return int(decimalWidths[p-1]) }

var decimalWidths = [38]uint8{
	1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9,
	9, 9, 10, 10, 11, 11, 11, 12, 12, 13, 13, 13, 14, 14, 15, 15, 16, 16, 16,
}

func nodeError(name string, err error) error {
	if err == nil {
		return nil
	}
	return errs.Invalid("column %s in the file schema: %v", name, err)
}
