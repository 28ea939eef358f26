package schema

import (
	"strconv"
	"strings"

	"github.com/tideline-db/tideline/internal/errs"
)

// MaxTypeDepth is how deep ARRAY, MAP, MULTISET, VECTOR and ROW may nest.
const MaxTypeDepth = 64

var kindNames = map[Kind]string{
	Boolean: "BOOLEAN", TinyInt: "TINYINT", SmallInt: "SMALLINT", Int: "INT", BigInt: "BIGINT",
	Float: "FLOAT", Double: "DOUBLE", Decimal: "DECIMAL", Char: "CHAR", VarChar: "VARCHAR",
	Binary: "BINARY", VarBinary: "VARBINARY", Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP",
	TimestampLTZ: "TIMESTAMP_LTZ", Array: "ARRAY", Map: "MAP", Multiset: "MULTISET", Row: "ROW",
	Variant: "VARIANT", Blob: "BLOB", Vector: "VECTOR", Geometry: "GEOMETRY", Geography: "GEOGRAPHY",
}

// String is the type's bare name, as messages use it.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return "KIND(" + strconv.Itoa(int(k)) + ")"
}

// Nested says whether values of the kind are made of other values.
func (k Kind) Nested() bool {
	return k == Array || k == Map || k == Multiset || k == Row || k == Vector
}

// String is the canonical text of FORMAT §2.2, with " NOT NULL" where it
// applies. Nested types print as in SQL, ARRAY<INT>; in a schema file they are
// JSON objects instead.
func (t Type) String() string {
	var b strings.Builder
	t.print(&b)
	return b.String()
}

func (t Type) print(b *strings.Builder) {
	b.WriteString(t.root())
	switch t.Kind {
	case Array, Multiset:
		b.WriteByte('<')
		printElem(b, t.Elem)
		b.WriteByte('>')
	case Vector:
		b.WriteByte('<')
		printElem(b, t.Elem)
		b.WriteString(", " + strconv.Itoa(t.Length) + ">")
	case Map:
		b.WriteByte('<')
		printElem(b, t.Key)
		b.WriteString(", ")
		printElem(b, t.Elem)
		b.WriteByte('>')
	case Row:
		b.WriteByte('<')
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString("`" + strings.ReplaceAll(f.Name, "`", "``") + "` ")
			f.Type.print(b)
		}
		b.WriteByte('>')
	}
	if !t.Nullable {
		b.WriteString(" NOT NULL")
	}
}

func printElem(b *strings.Builder, t *Type) {
	if t == nil {
		b.WriteString("?")
		return
	}
	t.print(b)
}

// root is the canonical text without nested parts and nullability.
func (t Type) root() string {
	name := t.Kind.String()
	n := strconv.Itoa
	switch t.Kind {
	case Decimal:
		return name + "(" + n(t.Prec) + ", " + n(t.Scale) + ")"
	case Char, Binary:
		return name + "(" + n(t.Length) + ")"
	case VarChar:
		if t.Length == MaxLength {
			return "STRING"
		}
		return name + "(" + n(t.Length) + ")"
	case VarBinary:
		if t.Length == MaxLength {
			return "BYTES"
		}
		return name + "(" + n(t.Length) + ")"
	case Time, Timestamp:
		return name + "(" + n(t.Prec) + ")"
	case TimestampLTZ:
		return "TIMESTAMP(" + n(t.Prec) + ") WITH LOCAL TIME ZONE"
	case Geometry, Geography:
		if t.Param != "" {
			return name + "(" + t.Param + ")"
		}
	}
	return name
}

// jsonName is the "type" text of a nested type's JSON object.
func (t Type) jsonName() string {
	if t.Nullable {
		return t.Kind.String()
	}
	return t.Kind.String() + " NOT NULL"
}

// Equal compares two types with everything that is part of them: nullability,
// and name, id and description of ROW members.
func (t Type) Equal(o Type) bool {
	if t.Kind != o.Kind || t.Nullable != o.Nullable || t.Length != o.Length || t.Prec != o.Prec ||
		t.Scale != o.Scale || t.Param != o.Param || len(t.Fields) != len(o.Fields) {
		return false
	}
	for i := range t.Fields {
		if !t.Fields[i].Equal(o.Fields[i]) {
			return false
		}
	}
	return equalPtr(t.Elem, o.Elem) && equalPtr(t.Key, o.Key)
}

func equalPtr(a, b *Type) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// Equal compares two fields, types included.
func (f Field) Equal(o Field) bool {
	return f.ID == o.ID && f.Name == o.Name && f.Description == o.Description &&
		equalText(f.Default, o.Default) && f.Type.Equal(o.Type)
}

func equalText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Clone copies a type so that no part of it is shared.
func (t Type) Clone() Type {
	if t.Elem != nil {
		elem := t.Elem.Clone()
		t.Elem = &elem
	}
	if t.Key != nil {
		key := t.Key.Clone()
		t.Key = &key
	}
	t.Fields = cloneFields(t.Fields)
	return t
}

func cloneFields(fields []Field) []Field {
	if fields == nil {
		return nil
	}
	out := make([]Field, len(fields))
	for i, f := range fields {
		f.Type = f.Type.Clone()
		out[i] = f
	}
	return out
}

// validate checks the ranges of one type and of everything below it; depth is
// the number of types around it. The sentence has no subject.
func (t Type) validate(depth int) error {
	if depth > MaxTypeDepth {
		return errs.Invalid("type nests deeper than %d levels", MaxTypeDepth)
	}
	bad := func() error { return errs.Invalid("type %s is out of range", t.root()) }
	switch t.Kind {
	case Char, VarChar, Binary, VarBinary:
		if t.Length < 1 || t.Length > MaxLength {
			return bad()
		}
	case Decimal:
		if t.Prec < 1 || t.Prec > 38 || t.Scale < 0 || t.Scale > t.Prec {
			return bad()
		}
	case Time, Timestamp, TimestampLTZ:
		if t.Prec < 0 || t.Prec > 9 {
			return bad()
		}
	case Array, Map, Multiset, Vector:
		return t.validateElems(depth)
	case Row:
		names := make(map[string]bool, len(t.Fields))
		for _, f := range t.Fields {
			if names[f.Name] {
				return errs.Invalid("ROW has two members named %q", f.Name)
			}
			names[f.Name] = true
			if err := f.Type.validate(depth + 1); err != nil {
				return err
			}
		}
	case Boolean, TinyInt, SmallInt, Int, BigInt, Float, Double, Date, Variant, Blob, Geometry, Geography:
	default:
		return errs.Invalid("%s is not a type", t.Kind)
	}
	return nil
}

func (t Type) validateElems(depth int) error {
	if t.Elem == nil || (t.Kind == Map) != (t.Key != nil) {
		return errs.Invalid("%s without its element types", t.Kind)
	}
	if t.Kind == Vector && (t.Length < 1 || t.Length > MaxLength) {
		return errs.Invalid("VECTOR length %d is out of range", t.Length)
	}
	if t.Key != nil {
		if err := t.Key.validate(depth + 1); err != nil {
			return err
		}
	}
	return t.Elem.validate(depth + 1)
}
