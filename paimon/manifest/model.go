package manifest

import "github.com/tideline-db/tideline/paimon/row"

// Stats are min, max and null count of some columns. Min and Max are BinaryRow
// bytes without the 4-byte arity; Arity says how many fields they have.
type Stats struct {
	Arity      int
	Min, Max   []byte
	NullCounts []int64 // -1 = unknown
}

// Kind of a manifest entry.
const (
	Add    = 0
	Delete = 1
)

// FileMeta is the _FILE record of a manifest entry (FORMAT §4.5). Keys are
// BinaryRow bytes without arity.
type FileMeta struct {
	Name           string
	Size           int64
	Rows           int64
	MinKey, MaxKey []byte
	KeyArity       int
	KeyStats       Stats
	ValueStats     Stats
	MinSeq, MaxSeq int64
	SchemaID       int64
	Level          int
	ExtraFiles     []string
	CreationTime   *int64 // local wall clock encoded as if it were UTC, ms
	DeleteRows     *int64 // rows of kind -U or -D; nil = unknown
	EmbeddedIndex  []byte
	Source         *int // 0 APPEND, 1 COMPACT
	ValueStatsCols []string
	HasStatsCols   bool // false: ValueStatsCols is null, stats cover all columns
	ExternalPath   *string
	FirstRowID     *int64
	WriteCols      []string
	HasWriteCols   bool

	// Data evolution only: read so that a rewrite can refuse to lose them.
	WriteColsSequences    []int64
	HasWriteColsSequences bool
}

// Entry is one record of a manifest.
type Entry struct {
	Kind         int
	Partition    []byte // BinaryRow bytes without arity
	PartArity    int
	Bucket       int
	TotalBuckets int
	File         FileMeta
}

// ListEntry is one record of a manifest list.
type ListEntry struct {
	Name                 string
	Size                 int64
	Added, Deleted       int64
	PartitionStats       Stats
	SchemaID             int64
	MinBucket, MaxBucket *int
	MinLevel, MaxLevel   *int
	MinRowID, MaxRowID   *int64
}

// Snapshot is the content of snapshot/snapshot-<id> (FORMAT §3.1). Pointers are
// nil where the key is absent or null.
type Snapshot struct {
	Version               int
	UUID                  string
	ID                    int64
	SchemaID              int64
	BaseManifestList      string
	BaseManifestListSize  *int64
	DeltaManifestList     string
	DeltaManifestListSize *int64
	ChangelogManifestList string
	ChangelogListSize     *int64
	IndexManifest         string
	CommitUser            string
	WriterVersion         string
	CommitIdentifier      int64
	CommitKind            string
	TimeMillis            int64
	TotalRecordCount      int64
	DeltaRecordCount      int64
	ChangelogRecordCount  *int64
	Watermark             *int64
	Statistics            string
	Properties            map[string]string
	NextRowID             *int64
	Operation             string
}

// Commit kinds.
const (
	KindAppend    = "APPEND"
	KindCompact   = "COMPACT"
	KindOverwrite = "OVERWRITE"
	KindAnalyze   = "ANALYZE"
)

// PropertyOffsets is the snapshot property that names the progress file.
const PropertyOffsets = "realtime.offsets"

var _ row.Value // keys and stats decode to row.Value
