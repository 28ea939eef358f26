package manifest

import (
	"strings"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
)

// The records as they stand in Avro. Fields that a writer schema lacks keep
// their zero value; fields that are not listed are skipped.

type wireStats struct {
	Min        []byte   `avro:"_MIN_VALUES"`
	Max        []byte   `avro:"_MAX_VALUES"`
	NullCounts []*int64 `avro:"_NULL_COUNTS"`
}

type wireFile struct {
	Name           string    `avro:"_FILE_NAME"`
	Size           int64     `avro:"_FILE_SIZE"`
	Rows           int64     `avro:"_ROW_COUNT"`
	MinKey         []byte    `avro:"_MIN_KEY"`
	MaxKey         []byte    `avro:"_MAX_KEY"`
	KeyStats       wireStats `avro:"_KEY_STATS"`
	ValueStats     wireStats `avro:"_VALUE_STATS"`
	MinSeq         int64     `avro:"_MIN_SEQUENCE_NUMBER"`
	MaxSeq         int64     `avro:"_MAX_SEQUENCE_NUMBER"`
	SchemaID       int64     `avro:"_SCHEMA_ID"`
	Level          int32     `avro:"_LEVEL"`
	ExtraFiles     []string  `avro:"_EXTRA_FILES"`
	CreationTime   *int64    `avro:"_CREATION_TIME"`
	DeleteRows     *int64    `avro:"_DELETE_ROW_COUNT"`
	EmbeddedIndex  []byte    `avro:"_EMBEDDED_FILE_INDEX"`
	Source         *int32    `avro:"_FILE_SOURCE"`
	ValueStatsCols *[]string `avro:"_VALUE_STATS_COLS"`
	ExternalPath   *string   `avro:"_EXTERNAL_PATH"`
	FirstRowID     *int64    `avro:"_FIRST_ROW_ID"`
	WriteCols      *[]string `avro:"_WRITE_COLS"`
	WriteColsSeqs  *[]int64  `avro:"_WRITE_COLS_SEQUENCES"`
}

type wireEntry struct {
	Version      int32    `avro:"_VERSION"`
	Kind         int32    `avro:"_KIND"`
	Partition    []byte   `avro:"_PARTITION"`
	Bucket       int32    `avro:"_BUCKET"`
	TotalBuckets int32    `avro:"_TOTAL_BUCKETS"`
	File         wireFile `avro:"_FILE"`
}

type wireList struct {
	Version   int32     `avro:"_VERSION"`
	Name      string    `avro:"_FILE_NAME"`
	Size      int64     `avro:"_FILE_SIZE"`
	Added     int64     `avro:"_NUM_ADDED_FILES"`
	Deleted   int64     `avro:"_NUM_DELETED_FILES"`
	Stats     wireStats `avro:"_PARTITION_STATS"`
	SchemaID  int64     `avro:"_SCHEMA_ID"`
	MinBucket *int32    `avro:"_MIN_BUCKET"`
	MaxBucket *int32    `avro:"_MAX_BUCKET"`
	MinLevel  *int32    `avro:"_MIN_LEVEL"`
	MaxLevel  *int32    `avro:"_MAX_LEVEL"`
	MinRowID  *int64    `avro:"_MIN_ROW_ID"`
	MaxRowID  *int64    `avro:"_MAX_ROW_ID"`
}

// Fields without which a record cannot be understood; all others may be absent
// in old files.
var (
	entryFields = []string{"_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_FILE"}
	fileFields  = []string{"_FILE_NAME", "_FILE_SIZE", "_ROW_COUNT", "_MIN_KEY", "_MAX_KEY", "_KEY_STATS",
		"_VALUE_STATS", "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID", "_LEVEL", "_EXTRA_FILES"}
	listFields = []string{"_VERSION", "_FILE_NAME", "_FILE_SIZE", "_NUM_ADDED_FILES", "_NUM_DELETED_FILES",
		"_PARTITION_STATS", "_SCHEMA_ID"}
)

func (w *wireStats) stats() (s Stats, err error) {
	if s.Min, s.Arity, err = rowOf(w.Min); err != nil {
		return s, err
	}
	maxArity := 0
	if s.Max, maxArity, err = rowOf(w.Max); err != nil {
		return s, err
	}
	if maxArity != s.Arity {
		return s, errs.Corrupt("", -1, "a minimum of %d and a maximum of %d fields", s.Arity, maxArity)
	}
	s.NullCounts = make([]int64, len(w.NullCounts))
	for i, n := range w.NullCounts {
		s.NullCounts[i] = -1
		if n != nil {
			s.NullCounts[i] = *n
		}
	}
	return s, nil
}

// rowOf splits a stored row. No bytes at all, which old nullable records give,
// mean the empty row.
func rowOf(data []byte) ([]byte, int, error) {
	if len(data) == 0 {
		return row.EmptyRow, 0, nil
	}
	return row.Deserialize(data)
}

func (w *wireEntry) entry() (e Entry, err error) {
	if err := checkVersion(w.Version, 2); err != nil {
		return e, err
	}
	if w.Kind != Add && w.Kind != Delete {
		return e, errs.Corrupt("", -1, "entry of kind %d", w.Kind)
	}
	e.Kind, e.Bucket, e.TotalBuckets = int(w.Kind), int(w.Bucket), int(w.TotalBuckets)
	if e.Partition, e.PartArity, err = rowOf(w.Partition); err != nil {
		return e, err
	}
	e.File, err = w.File.meta()
	return e, err
}

func (w *wireFile) meta() (m FileMeta, err error) {
	if err := checkName(w.Name); err != nil {
		return m, err
	}
	if w.Size < 0 || w.Rows < 0 || w.Level < 0 {
		return m, errs.Corrupt("", -1, "file %q of %d bytes and %d rows at level %d", w.Name, w.Size, w.Rows, w.Level)
	}
	m = FileMeta{
		Name: w.Name, Size: w.Size, Rows: w.Rows, MinSeq: w.MinSeq, MaxSeq: w.MaxSeq, SchemaID: w.SchemaID,
		Level: int(w.Level), ExtraFiles: w.ExtraFiles, CreationTime: w.CreationTime, DeleteRows: w.DeleteRows,
		EmbeddedIndex: w.EmbeddedIndex, Source: widen(w.Source), ExternalPath: w.ExternalPath, FirstRowID: w.FirstRowID,
	}
	if m.MinKey, m.KeyArity, err = rowOf(w.MinKey); err != nil {
		return m, err
	}
	maxArity := 0
	if m.MaxKey, maxArity, err = rowOf(w.MaxKey); err != nil {
		return m, err
	}
	if maxArity != m.KeyArity {
		return m, errs.Corrupt("", -1, "file %q: keys of %d and %d fields", w.Name, m.KeyArity, maxArity)
	}
	if m.KeyStats, err = w.KeyStats.stats(); err != nil {
		return m, err
	}
	if m.ValueStats, err = w.ValueStats.stats(); err != nil {
		return m, err
	}
	for _, x := range w.ExtraFiles {
		if err := checkName(x); err != nil {
			return m, err
		}
	}
	if w.ValueStatsCols != nil {
		m.ValueStatsCols, m.HasStatsCols = *w.ValueStatsCols, true
	}
	if w.WriteCols != nil {
		m.WriteCols, m.HasWriteCols = *w.WriteCols, true
	}
	if w.WriteColsSeqs != nil {
		m.WriteColsSequences, m.HasWriteColsSequences = *w.WriteColsSeqs, true
	}
	return m, nil
}

func (w *wireList) entry() (e ListEntry, err error) {
	if err := checkVersion(w.Version, 2); err != nil {
		return e, err
	}
	if err := checkName(w.Name); err != nil {
		return e, err
	}
	if w.Size < 0 || w.Added < 0 || w.Deleted < 0 {
		return e, errs.Corrupt("", -1, "manifest %q of %d bytes, %d added, %d deleted", w.Name, w.Size, w.Added, w.Deleted)
	}
	e = ListEntry{
		Name: w.Name, Size: w.Size, Added: w.Added, Deleted: w.Deleted, SchemaID: w.SchemaID,
		MinBucket: widen(w.MinBucket), MaxBucket: widen(w.MaxBucket),
		MinLevel: widen(w.MinLevel), MaxLevel: widen(w.MaxLevel),
		MinRowID: w.MinRowID, MaxRowID: w.MaxRowID,
	}
	e.PartitionStats, err = w.Stats.stats()
	return e, err
}

func widen(p *int32) *int {
	if p == nil {
		return nil
	}
	v := int(*p)
	return &v
}

func checkVersion(got, want int32) error {
	if got != want {
		return errs.Corrupt("", -1, "_VERSION %d, expected %d", got, want)
	}
	return nil
}

// checkName: names from a table become parts of paths, so a name is one
// component.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return errs.Corrupt("", -1, "%q is no file name", name)
	}
	return nil
}
