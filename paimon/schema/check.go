package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/tideline-db/tideline/internal/errs"
)

// CheckRead says whether rows of the table can be answered rightly: every option
// is honoured, known to be harmless, or refused with ErrUnsupported and a
// sentence that names it; so are column types and the shape of the key. The
// format of data files is decided per file by its name.
func (o Options) CheckRead(s *Schema) error {
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		if err := checkOption(key, s.Options[key], false); err != nil {
			return err
		}
	}
	if o.IgnoreDelete {
		return errs.Unsupported("option ignore-delete = \"true\": deletes are always applied")
	}
	if err := checkColumns(s, o.PartitionLegacyName); err != nil {
		return err
	}
	if o.Bucket == -2 {
		return errs.Unsupported("option bucket = \"-2\": rows wait in a postponed bucket until another engine moves them")
	}
	for _, name := range s.PartitionKeys {
		if s.IsPrimaryKey() && !slices.Contains(s.PrimaryKeys, name) {
			return errs.Unsupported("primary key %v without the partition key %q: a key may move between partitions",
				s.PrimaryKeys, name)
		}
	}
	return nil
}

// CheckWrite says whether rows can be added so that every engine reads them
// rightly. It includes CheckRead, since a writing session also answers reads.
func (o Options) CheckWrite(s *Schema) error {
	if err := o.CheckRead(s); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		if err := checkOption(key, s.Options[key], true); err != nil {
			return err
		}
	}
	if strategy := s.Options["data-file.external-paths.strategy"]; s.Options["data-file.external-paths"] != "" &&
		!strings.EqualFold(strings.TrimSpace(strategy), "none") && strategy != "" {
		return errs.Unsupported("option data-file.external-paths = %q: data files are written below the table only",
			s.Options["data-file.external-paths"])
	}
	if o.FileFormat != "parquet" {
		return errs.Unsupported("option file.format = %q: only parquet is written", o.FileFormat)
	}
	switch o.Compression {
	case "zstd", "snappy", "gzip", "lz4_raw", "none":
	default:
		return errs.Unsupported("option file.compression = %q: zstd, snappy, gzip, lz4_raw and none are written",
			o.Compression)
	}
	if s.IsPrimaryKey() && o.Bucket < 1 {
		return errs.Unsupported("option bucket = \"%d\": a primary-key table without a fixed number of buckets is not written",
			o.Bucket)
	}
	if o.RealtimeEnabled != nil && !*o.RealtimeEnabled {
		return errs.Unsupported("option realtime.enabled = \"false\": the table is closed for real-time writing")
	}
	return nil
}

// checkColumns refuses column types and names that cannot be answered rightly.
func checkColumns(s *Schema, legacy bool) error {
	for _, f := range s.Fields {
		if IsSystemName(f.Name) {
			return errs.Unsupported("column %q has the name of a system column", f.Name)
		}
		if kind := foreignKind(f.Type); kind != 0 {
			return errs.Unsupported("column %q is or contains the type %s", f.Name, kind)
		}
	}
	for _, name := range s.PrimaryKeys {
		if f := s.Fields[s.FieldIndex(name)]; f.Type.Kind.Nested() {
			return errs.Unsupported("primary key %q is of the nested type %s", name, f.Type)
		}
	}
	for _, name := range s.PartitionKeys {
		f := s.Fields[s.FieldIndex(name)]
		switch kind := f.Type.Kind; {
		case kind.Nested(), kind == Binary, kind == VarBinary:
			return errs.Unsupported("partition key %q is of the type %s, which has no directory name", name, f.Type)
		case !legacy && (kind == Time || kind == TimestampLTZ):
			return errs.Unsupported("partition key %q of the type %s has no directory name with option partition.legacy-name = \"false\"",
				name, f.Type)
		}
	}
	return nil
}

// foreignKind is the first kind inside a type that has no Arrow form here, 0
// when there is none.
func foreignKind(t Type) Kind {
	switch t.Kind {
	case Variant, Blob, Vector, Geometry, Geography:
		return t.Kind
	}
	for _, f := range t.Fields {
		if kind := foreignKind(f.Type); kind != 0 {
			return kind
		}
	}
	for _, part := range []*Type{t.Key, t.Elem} {
		if part == nil {
			continue
		}
		if kind := foreignKind(*part); kind != 0 {
			return kind
		}
	}
	return 0
}

// checkOption judges one option of the table.
func checkOption(key, val string, write bool) error {
	refuse := func(why string) error {
		return errs.Unsupported("option %s = %q: %s", key, clipName(val), why)
	}
	if g, ok := guarded[key]; ok {
		if g.accepts(val, write) {
			return nil
		}
		return refuse(g.why)
	}
	if honoured(key) {
		return nil
	}
	if _, ok := harmlessKeys[key]; ok {
		return nil
	}
	for _, g := range guardedPrefixes {
		if strings.HasPrefix(key, g.prefix) && (write || !g.writeOnly) {
			return refuse(g.why)
		}
	}
	if _, ok := harmlessFamily(key); ok {
		return nil
	}
	return errs.Unsupported("option %s = %q is not known", clipName(key), clipName(val))
}

func (g guard) accepts(val string, write bool) bool {
	word := strings.ToLower(strings.TrimSpace(val))
	if slices.Contains(g.fine, word) || (g.writeOnly && !write) {
		return true
	}
	if !g.level0 {
		return false
	}
	zero, err := levelZero(val)
	return err == nil && (zero == "" || slices.Contains(g.fine, zero))
}
