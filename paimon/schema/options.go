package schema

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-db/tideline/internal/errs"
)

// Options are the table options that this engine knows, typed, with the
// defaults of FORMAT §10 filled in. Sizes are in bytes.
//
// Those that no answer depends on are checked and not followed: PageSize and
// Dictionary (the layout of data files is the writer's own, FORMAT §7.4),
// IndexInDataDir, ManifestFullCompactionSize, ManifestDropDeleteStats, MemoryStats
// (memory always keeps full statistics), and those of expiry, which is left to
// other engines: SnapshotRetained*, SnapshotExpireLimit.
type Options struct {
	Bucket    int      // bucket: number of buckets, -1 none (append) or dynamic (primary key), -2 postponed
	BucketKey []string // bucket-key, by default the trimmed primary key

	FileFormat            string // file.format of new data files
	Compression           string // file.compression of new level-0 files: zstd snappy gzip lz4_raw none
	ZstdLevel             int    // file.compression.zstd-level
	TargetFileSize        int64  // target-file-size: 128 MB primary key, 256 MB append
	BlockSize             int64  // parquet.block.size or file.block-size: bytes of a row group
	PageSize              int64  // parquet.page.size
	Dictionary            bool   // parquet.enable.dictionary
	DataFilePrefix        string // data-file.prefix
	FileSuffixCompression bool   // file.suffix.include.compression
	ThinMode              bool   // data-file.thin-mode: no _KEY_ columns in new files

	PathDirectory        string // data-file.path-directory below the table root, "" for none
	IndexInDataDir       bool   // index-file-in-data-file-dir
	PartitionDefaultName string // partition.default-name
	PartitionLegacyName  bool   // partition.legacy-name

	StatsMode       StatsMode            // metadata.stats-mode
	StatsModeColumn map[string]StatsMode // fields.<column>.stats-mode
	StatsKeepFirst  int                  // metadata.stats-keep-first-n-columns, -1 for all
	StatsDense      bool                 // metadata.stats-dense-store

	ManifestTargetSize         int64 // manifest.target-file-size
	ManifestMergeMin           int   // manifest.merge-min-count
	ManifestFullCompactionSize int64 // manifest.full-compaction-threshold-size
	ManifestDropDeleteStats    bool  // manifest.delete-file-drop-stats

	CommitMaxRetries   int           // commit.max-retries
	CommitTimeout      time.Duration // commit.timeout, 0 for none
	CommitMinRetryWait time.Duration // commit.min-retry-wait
	CommitMaxRetryWait time.Duration // commit.max-retry-wait

	SnapshotRetainedMin int           // snapshot.num-retained.min
	SnapshotRetainedMax int           // snapshot.num-retained.max
	SnapshotRetained    time.Duration // snapshot.time-retained
	SnapshotExpireLimit int           // snapshot.expire.limit

	RealtimeEnabled *bool         // realtime.enabled: nil when absent, which allows it
	TicketTTL       time.Duration // realtime.read-view-ttl, above 0
	MemoryStats     bool          // realtime.store.stats-mode is full

	MergeEngine   string // merge-engine
	IgnoreDelete  bool   // ignore-delete or one of its three old names
	ReadBatchSize int    // read.batch-size, rows
}

// ignoreDeleteKeys are ignore-delete and the names it had before.
var ignoreDeleteKeys = []string{
	"ignore-delete", "deduplicate.ignore-delete", "first-row.ignore-delete", "partial-update.ignore-delete",
}

// ParseOptions types the options of a schema. ErrInvalid names the option and
// its value. That an option can be honoured at all is asked with CheckRead and
// CheckWrite.
func ParseOptions(s *Schema) (Options, error) {
	r := &optionReader{vals: s.Options}
	target := int64(256 << 20)
	if s.IsPrimaryKey() {
		target = 128 << 20
	}
	o := Options{
		Bucket: r.int("bucket", -1, -2, math.MaxInt32), BucketKey: splitBucketKey(s.Options["bucket-key"]),
		FileFormat: r.word("file.format", "parquet"), Compression: r.compression(),
		ZstdLevel: r.int("file.compression.zstd-level", 1, 1, 22), TargetFileSize: r.size("target-file-size", target, 1),
		BlockSize:  r.size("parquet.block.size", r.size("file.block-size", 128<<20, 1), 1),
		PageSize:   r.size("parquet.page.size", 1<<20, 1),
		Dictionary: r.bool("parquet.enable.dictionary", true), DataFilePrefix: r.text("data-file.prefix", "data-"),
		FileSuffixCompression: r.bool("file.suffix.include.compression", false),
		ThinMode:              r.bool("data-file.thin-mode", false),
		PathDirectory:         strings.Trim(r.text("data-file.path-directory", ""), "/"),
		IndexInDataDir:        r.bool("index-file-in-data-file-dir", false),
		PartitionDefaultName:  r.text("partition.default-name", "__DEFAULT_PARTITION__"),
		PartitionLegacyName:   r.bool("partition.legacy-name", true),
		StatsMode:             read(r, "metadata.stats-mode", StatsMode{Kind: StatsTruncate, Length: 16}, ParseStatsMode),
		StatsKeepFirst:        r.int("metadata.stats-keep-first-n-columns", -1, -1, math.MaxInt32),
		StatsDense:            r.bool("metadata.stats-dense-store", true),

		ManifestTargetSize:         r.size("manifest.target-file-size", 8<<20, 1),
		ManifestMergeMin:           r.int("manifest.merge-min-count", 30, 0, math.MaxInt32),
		ManifestFullCompactionSize: r.size("manifest.full-compaction-threshold-size", 16<<20, 1),
		ManifestDropDeleteStats:    r.bool("manifest.delete-file-drop-stats", false),

		CommitMaxRetries:    r.int("commit.max-retries", 10, 0, math.MaxInt32),
		CommitTimeout:       r.duration("commit.timeout", 0, 0),
		CommitMinRetryWait:  r.duration("commit.min-retry-wait", 10*time.Millisecond, 0),
		CommitMaxRetryWait:  r.duration("commit.max-retry-wait", 10*time.Second, 0),
		SnapshotRetainedMin: r.int("snapshot.num-retained.min", 10, 1, math.MaxInt32),
		SnapshotRetainedMax: r.int("snapshot.num-retained.max", math.MaxInt32, 1, math.MaxInt32),
		SnapshotRetained:    r.duration("snapshot.time-retained", time.Hour, 0),
		SnapshotExpireLimit: r.int("snapshot.expire.limit", 50, 1, math.MaxInt32),

		TicketTTL:     r.duration("realtime.read-view-ttl", 5*time.Minute, 1),
		MemoryStats:   r.memoryStats(),
		MergeEngine:   r.word("merge-engine", "deduplicate"),
		ReadBatchSize: r.int("read.batch-size", 1024, 1, 1<<20),
	}
	if _, ok := s.Options["realtime.enabled"]; ok {
		on := r.bool("realtime.enabled", false)
		o.RealtimeEnabled = &on
	}
	for _, key := range ignoreDeleteKeys {
		o.IgnoreDelete = r.bool(key, false) || o.IgnoreDelete
	}
	o.StatsModeColumn = r.columnStats()
	if r.err != nil {
		return Options{}, r.err
	}
	return o, o.finish(s)
}

// finish fills in and verifies what more than one option decides.
func (o *Options) finish(s *Schema) error {
	if o.Bucket == 0 {
		return errs.Invalid("option bucket = \"0\": a positive number, -1 or -2 is expected")
	}
	for _, name := range o.BucketKey {
		if s.FieldIndex(name) < 0 {
			return errs.Invalid("option bucket-key = %q: %q is not a column", s.Options["bucket-key"], name)
		}
	}
	if len(o.BucketKey) == 0 {
		for _, i := range s.TrimmedKey() {
			o.BucketKey = append(o.BucketKey, s.Fields[i].Name)
		}
	}
	if o.SnapshotRetainedMax < o.SnapshotRetainedMin {
		return errs.Invalid("option snapshot.num-retained.max = \"%d\" is below snapshot.num-retained.min = \"%d\"",
			o.SnapshotRetainedMax, o.SnapshotRetainedMin)
	}
	if strings.TrimSpace(o.PartitionDefaultName) == "" {
		return errs.Invalid("option partition.default-name = %q is blank", o.PartitionDefaultName)
	}
	if err := checkPathPart("data-file.prefix", o.DataFilePrefix); err != nil {
		return err
	}
	if o.PathDirectory == "" {
		return nil
	}
	for part := range strings.SplitSeq(o.PathDirectory, "/") {
		if err := checkPathPart("data-file.path-directory", part); err != nil || part == "" {
			return errs.Invalid("option data-file.path-directory = %q is not a clean relative path", o.PathDirectory)
		}
	}
	return nil
}

// checkPathPart refuses text that would lead out of the directory it is put in.
func checkPathPart(key, part string) error {
	if part == "." || part == ".." || strings.ContainsAny(part, "/\\:\x00") || len(part) > 128 {
		return errs.Invalid("option %s = %q is not a clean part of a file name", key, clipName(part))
	}
	return nil
}

// compression is file.compression, or what file.compression.per.level says for
// level 0, the only level that new files go to. Spellings of "none" become one.
func (r *optionReader) compression() string {
	name := r.word("file.compression", "zstd")
	if text, ok := r.vals["file.compression.per.level"]; ok {
		level, err := levelZero(text)
		if err != nil {
			r.fail("file.compression.per.level", err)
		}
		if level != "" {
			name = level
		}
	}
	switch name {
	case "null", "uncompressed":
		return "none"
	}
	return name
}

// levelZero reads "0:snappy,5:zstd" and returns what stands for level 0, "" when
// nothing does.
func levelZero(text string) (string, error) {
	zero := ""
	for part := range strings.SplitSeq(text, ",") {
		level, val, ok := strings.Cut(part, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(level), 10, 32)
		if !ok || err != nil || n < 0 {
			return "", errs.Invalid("a list such as 0:a,5:b is expected")
		}
		if n == 0 {
			zero = strings.ToLower(strings.TrimSpace(val))
		}
	}
	return zero, nil
}

func (r *optionReader) memoryStats() bool {
	return read(r, "realtime.store.stats-mode", true, func(s string) (bool, error) {
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "full":
			return true, nil
		case "none":
			return false, nil
		}
		return false, errs.Invalid("none or full is expected")
	})
}
