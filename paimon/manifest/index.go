package manifest

import (
	"github.com/twmb/avro"

	"github.com/tideline-db/tideline/internal/errs"
)

// Index types that the format itself defines; other names are global indexes.
const (
	IndexDeletionVectors = "DELETION_VECTORS"
	IndexHash            = "HASH"
)

// IndexEntry is one record of an index manifest, which lists all live index files
// of a table (FORMAT §4.7). Index manifests are carried forward by name and never
// rewritten here; the fields are those that tell whether a table can be served and
// where its deletion vectors are.
type IndexEntry struct {
	Kind         int
	Partition    []byte // BinaryRow bytes without arity
	PartArity    int
	Bucket       int
	Type         string
	Name         string
	Size, Rows   int64
	Vectors      []VectorRange // of IndexDeletionVectors
	ExternalPath *string
	Global       bool // belongs to a global index
}

// VectorRange says where in an index file the deletion vector of a data file lies.
// Size excludes length and checksum for 32-bit vectors and includes them for 64-bit
// ones (FORMAT §8.5).
type VectorRange struct {
	DataFile     string
	Offset, Size int
	Cardinality  *int64 // nil = unknown
}

// ReadIndex decodes an index manifest; memory and errors are as with Read.
func ReadIndex(data []byte, file string) ([]IndexEntry, error) {
	return readAll(data, file, indexCodec, (*wireIndex).entry)
}

type wireIndex struct {
	Version      int32        `avro:"_VERSION"`
	Kind         int32        `avro:"_KIND"`
	Partition    []byte       `avro:"_PARTITION"`
	Bucket       int32        `avro:"_BUCKET"`
	Type         string       `avro:"_INDEX_TYPE"`
	Name         string       `avro:"_FILE_NAME"`
	Size         int64        `avro:"_FILE_SIZE"`
	Rows         int64        `avro:"_ROW_COUNT"`
	Vectors      []*wireRange `avro:"_DELETIONS_VECTORS_RANGES"`
	ExternalPath *string      `avro:"_EXTERNAL_PATH"`
	Global       *struct{}    `avro:"_GLOBAL_INDEX"`
}

type wireRange struct {
	DataFile    string `avro:"f0"`
	Offset      int32  `avro:"f1"`
	Size        int32  `avro:"f2"`
	Cardinality *int64 `avro:"_CARDINALITY"`
}

// minIndexSchema is a record of the required fields only. It never equals the
// text of a file, so the fields of the file are always checked.
const minIndexSchema = `{"type":"record","name":"record","fields":[]}`

var indexCodec = recordCodec{minIndexSchema, avro.MustParse(minIndexSchema), map[string][]string{
	"": {"_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_INDEX_TYPE", "_FILE_NAME", "_FILE_SIZE", "_ROW_COUNT"}}}

func (w *wireIndex) entry() (e IndexEntry, err error) {
	if err := checkVersion(w.Version, 1); err != nil {
		return e, err
	}
	if err := checkName(w.Name); err != nil {
		return e, err
	}
	if w.Size < 0 || w.Rows < 0 {
		return e, errs.Corrupt("", -1, "index file %q of %d bytes and %d rows", w.Name, w.Size, w.Rows)
	}
	e = IndexEntry{
		Kind: int(w.Kind), Bucket: int(w.Bucket), Type: w.Type, Name: w.Name, Size: w.Size, Rows: w.Rows,
		ExternalPath: w.ExternalPath, Global: w.Global != nil,
	}
	if e.Partition, e.PartArity, err = rowOf(w.Partition); err != nil {
		return e, err
	}
	for _, v := range w.Vectors {
		if v == nil || v.Offset < 0 || v.Size < 0 {
			return e, errs.Corrupt("", -1, "index file %q: a deletion vector without a place", w.Name)
		}
		if err := checkName(v.DataFile); err != nil {
			return e, err
		}
		e.Vectors = append(e.Vectors, VectorRange{v.DataFile, int(v.Offset), int(v.Size), v.Cardinality})
	}
	return e, nil
}
