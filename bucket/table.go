package bucket

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/schema"
)

// ID names one partition-bucket. Partition is the text of progress.Canonical
// ("dt=2024-01-01/hr=3", keys sorted), empty for an unpartitioned table: two rows
// whose partitions share a directory share the partition-bucket.
type ID struct {
	Partition string
	Bucket    int32
}

func (id ID) String() string {
	if id.Partition == "" {
		return fmt.Sprintf("bucket-%d", id.Bucket)
	}
	return fmt.Sprintf("%s/bucket-%d", id.Partition, id.Bucket)
}

// Less orders partition-buckets by partition, then bucket.
func (id ID) Less(other ID) bool {
	if id.Partition != other.Partition {
		return id.Partition < other.Partition
	}
	return id.Bucket < other.Bucket
}

// Table is what a bucket must know of its table: one schema version, its typed
// options, and how every column is laid out in memory. It is immutable and
// shared by all buckets of a session.
type Table struct {
	Schema  *schema.Schema
	Options schema.Options
	Layout  merge.Layout // all fields of the schema; Key is the trimmed primary key

	arrow      *arrow.Schema
	columns    []*node
	partition  []int // positions of the partition columns, in partition order
	partTypes  []schema.Type
	bucketKey  []int // positions of the bucket-key columns
	keyTypes   []schema.Type
	buckets    int // 1 when every row goes to bucket 0
	primaryKey bool
	flat       bool // no nested column: small batches may share an open chunk
	rowBytes   int  // bytes of the fixed-width part of a row
}

// NewTable lays out a schema. errs.ErrUnsupported names a column type that has
// no layout in memory, or a bucket mode that cannot be written here.
func NewTable(s *schema.Schema, o schema.Options) (*Table, error) {
	t := &Table{
		Schema: s, Options: o,
		Layout:     merge.Layout{Fields: s.Fields, Key: s.TrimmedKey()},
		arrow:      schema.ArrowSchema(s.Fields),
		partition:  s.PartitionIndexes(),
		primaryKey: s.IsPrimaryKey(),
		flat:       true,
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if _, err := schema.ArrowType(f.Type); err != nil {
			return nil, err
		}
		n, err := layOut(f.Name, f.Type, t.arrow.Field(i).Type)
		if err != nil {
			return nil, err
		}
		t.columns = append(t.columns, n)
		t.flat = t.flat && n.shape <= shapeText
		t.rowBytes += n.cellBytes()
	}
	for _, i := range t.Layout.Key {
		if t.columns[i].shape > shapeText {
			return nil, errs.Unsupported("column %s: a %s cannot be a key", t.columns[i].name, t.columns[i].typ)
		}
	}
	for _, i := range t.partition {
		t.partTypes = append(t.partTypes, s.Fields[i].Type)
	}
	return t, t.setBuckets()
}

// setBuckets decides how rows find their bucket: by hash over the bucket key for
// a fixed number of buckets; always bucket 0 for append tables without buckets.
func (t *Table) setBuckets() error {
	t.buckets = t.Options.Bucket
	switch {
	case t.buckets == -1 && !t.primaryKey:
		t.buckets = 1
	case t.buckets < 1:
		return errs.Unsupported("bucket = %d: rows of such a table find their bucket only at compaction or through an index", t.buckets)
	}
	t.bucketKey = t.Schema.BucketKeyIndexes()
	if t.buckets > 1 && len(t.bucketKey) == 0 {
		return errs.Unsupported("bucket = %d without a bucket key: rows have no bucket", t.buckets)
	}
	for _, i := range t.bucketKey {
		t.keyTypes = append(t.keyTypes, t.Schema.Fields[i].Type)
	}
	return nil
}

// ArrowSchema is the exact layout of a record that Prepare accepts; its columns
// may come in any order.
func (t *Table) ArrowSchema() *arrow.Schema { return t.arrow }

// IsPrimaryKey tells whether the rows of the table have a primary key.
func (t *Table) IsPrimaryKey() bool { return t.primaryKey }
