package schema

import (
	"slices"
	"strings"
)

// CurrentVersion is the version of the schema files that are written.
const CurrentVersion = 3

// Schema is one version of a table's schema, the content of schema/schema-<id>.
// It is immutable once parsed.
type Schema struct {
	Version        int // as in the file; what older versions imply is already in Options
	ID             int64
	Fields         []Field
	HighestFieldID int
	PartitionKeys  []string
	PrimaryKeys    []string // empty: an append table
	Options        map[string]string
	Comment        *string
	TimeMillis     int64 // creation time, epoch milliseconds
}

// FieldIndex is the position of a column, -1 when there is none of that name.
func (s *Schema) FieldIndex(name string) int {
	return slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
}

// FieldByID is the position of a column by its id, -1 when there is none. Columns
// of two schema versions are matched by it.
func (s *Schema) FieldByID(id int) int { return FieldByID(s.Fields, id) }

// FieldByID is the position of the field with the id, not looking into nested
// types; -1 when there is none.
func FieldByID(fields []Field, id int) int {
	return slices.IndexFunc(fields, func(f Field) bool { return f.ID == id })
}

// IsPrimaryKey says whether the table has a primary key; without one it is an
// append table.
func (s *Schema) IsPrimaryKey() bool { return len(s.PrimaryKeys) > 0 }

// TrimmedKey is the primary key without the partition keys, as positions in
// Fields in the order of PrimaryKeys: the key that rows are merged by inside a
// partition-bucket (FORMAT §2.4).
func (s *Schema) TrimmedKey() []int {
	var out []int
	for _, name := range s.PrimaryKeys {
		if !slices.Contains(s.PartitionKeys, name) {
			out = append(out, s.FieldIndex(name))
		}
	}
	return out
}

// PartitionIndexes are the partition keys as positions in Fields, in the order
// of PartitionKeys.
func (s *Schema) PartitionIndexes() []int { return s.indexes(s.PartitionKeys) }

// BucketKeyIndexes are the columns that rows are hashed by, as positions in
// Fields in the order of the option bucket-key, by default the trimmed primary
// key. nil when the table has neither, and when the option names a column that
// does not exist, which ParseOptions refuses.
func (s *Schema) BucketKeyIndexes() []int {
	names := splitBucketKey(s.Options["bucket-key"])
	if len(names) == 0 {
		return s.TrimmedKey()
	}
	out := s.indexes(names)
	if slices.Contains(out, -1) {
		return nil
	}
	return out
}

// splitBucketKey splits at commas and trims nothing, as the format asks.
func splitBucketKey(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (s *Schema) indexes(names []string) []int {
	out := make([]int, len(names))
	for i, name := range names {
		out[i] = s.FieldIndex(name)
	}
	return out
}
