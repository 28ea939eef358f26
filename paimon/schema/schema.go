package schema

// Schema is one version of a table's schema, the content of schema/schema-<id>.
// It is immutable once parsed.
type Schema struct {
	Version        int
	ID             int64
	Fields         []Field
	HighestFieldID int
	PartitionKeys  []string
	PrimaryKeys    []string
	Options        map[string]string
	Comment        *string
	TimeMillis     int64
}
