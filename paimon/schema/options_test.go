package schema

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
)

// table is a primary-key table of two buckets, or an append table, with options.
func table(t testing.TB, primary bool, options map[string]string) *Schema {
	s := &Schema{Version: 3, Fields: fields(t, "k", "INT NOT NULL", "v", "STRING"), HighestFieldID: 1, Options: map[string]string{}}
	s.Fields[1].ID = 1
	if primary {
		s.PrimaryKeys = []string{"k"}
		s.Options["bucket"] = "2"
	}
	maps.Copy(s.Options, options)
	return s
}

func TestOptionDefaults(t *testing.T) {
	o, err := ParseOptions(table(t, false, nil))
	require.NoError(t, err)
	require.Equal(t, Options{
		Bucket: -1, FileFormat: "parquet", Compression: "zstd", ZstdLevel: 1, TargetFileSize: 256 << 20, BlockSize: 128 << 20,
		PageSize: 1 << 20, Dictionary: true, DataFilePrefix: "data-", PartitionDefaultName: "__DEFAULT_PARTITION__",
		PartitionLegacyName: true, StatsMode: StatsMode{StatsTruncate, 16}, StatsModeColumn: map[string]StatsMode{},
		StatsKeepFirst: -1, StatsDense: true, ManifestTargetSize: 8 << 20, ManifestMergeMin: 30,
		ManifestFullCompactionSize: 16 << 20, CommitMaxRetries: 10, CommitMinRetryWait: 10 * time.Millisecond,
		CommitMaxRetryWait: 10 * time.Second, SnapshotRetainedMin: 10, SnapshotRetainedMax: 2147483647,
		SnapshotRetained: time.Hour, SnapshotExpireLimit: 50, TicketTTL: 5 * time.Minute, MemoryStats: true,
		MergeEngine: "deduplicate", ReadBatchSize: 1024,
	}, o)
	o, err = ParseOptions(table(t, true, nil))
	require.NoError(t, err)
	require.Equal(t, int64(128<<20), o.TargetFileSize)
	require.Equal(t, []string{"k"}, o.BucketKey)
}

func TestOptionValues(t *testing.T) {
	o, err := ParseOptions(table(t, true, map[string]string{
		"file.compression": "gzip", "file.compression.per.level": "0:SNAPPY,5:zstd", "target-file-size": "8 kb",
		"file.block-size": "2 MB", "parquet.block.size": "1024", "data-file.path-directory": "/a/b/",
		"metadata.stats-mode": "truncate(4)", "fields.v.stats-mode": "full", "metadata.stats-keep-first-n-columns": "1",
		"commit.timeout": "1 min", "realtime.enabled": "TRUE", "realtime.read-view-ttl": "1234 ms",
		"realtime.store.stats-mode": "none", "first-row.ignore-delete": "true", "read.batch-size": "3",
	}))
	require.NoError(t, err)
	require.Equal(t, "snappy", o.Compression)
	require.Equal(t, int64(8<<10), o.TargetFileSize)
	require.Equal(t, int64(1024), o.BlockSize)
	require.Equal(t, "a/b", o.PathDirectory)
	require.Equal(t, time.Minute, o.CommitTimeout)
	require.True(t, *o.RealtimeEnabled)
	require.Equal(t, 1234*time.Millisecond, o.TicketTTL)
	require.False(t, o.MemoryStats)
	require.True(t, o.IgnoreDelete)
	require.Equal(t, 3, o.ReadBatchSize)
	f := append(table(t, true, nil).Fields, Field{Name: "w"})
	require.Equal(t, []StatsMode{{StatsTruncate, 4}, {Kind: StatsFull}, {Kind: StatsNone}}, o.StatsModes(f))
	for _, text := range []string{"none", "counts", "full", "truncate(16)"} {
		m, err := ParseStatsMode(strings.ToUpper(text))
		require.NoError(t, err)
		require.Equal(t, text, m.String())
	}
}

func TestBadOptionValuesAreNamed(t *testing.T) {
	for key, val := range map[string]string{
		"bucket": "0", "bucket-key": "x", "target-file-size": "0", "file.block-size": "5 parsecs",
		"file.compression.zstd-level": "99", "file.compression.per.level": "zstd", "data-file.prefix": "../x",
		"data-file.path-directory": "a/../b", "partition.default-name": " ", "metadata.stats-mode": "truncate(0)",
		"fields.v.stats-mode": "some", "commit.timeout": "soon", "commit.max-retries": "-1", "snapshot.num-retained.max": "1",
		"realtime.enabled": "yes", "realtime.read-view-ttl": "0", "realtime.store.stats-mode": "some", "ignore-delete": "1",
		"read.batch-size": "0", "parquet.enable.dictionary": "", "manifest.merge-min-count": "1.5",
	} {
		_, err := ParseOptions(table(t, true, map[string]string{key: val}))
		require.ErrorIs(t, err, errs.ErrInvalid, "%s = %s", key, val)
		require.ErrorContains(t, err, "option "+key+" = \""+val+"\"")
	}
}

func TestDurationsAndSizes(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5 min": 5 * time.Minute, "1234 ms": 1234 * time.Millisecond, "1 h": time.Hour, "7d": 168 * time.Hour, " 3 S ": 3 * time.Second,
		"12": 12 * time.Millisecond, "1 µs": time.Microsecond, "9 nanos": 9, "2 MINUTES": 2 * time.Minute, "0 s": 0,
	} {
		got, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]int64{
		"128 MB": 128 << 20, "1 gb": 1 << 30, "1B": 1, "1 b": 1, "17": 17, "256 kb": 256 << 10, "3k": 3 << 10, "2 Tebibytes": 2 << 40,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", " ", "-1 s", "1.5 s", "s", "1 fortnight", "9223372036854775807 d", "99999999999999999999", "PT5M"} {
		_, err := ParseDuration(text)
		require.ErrorIs(t, err, errs.ErrInvalid, text)
	}
	for _, text := range []string{"", "mb", "-1 mb", "1 pb", "9223372036854775807 kb", "1.5 gb"} {
		_, err := ParseSize(text)
		require.ErrorIs(t, err, errs.ErrInvalid, text)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	const both, write = "read", "write"
	for option, when := range map[string]string{
		"merge-engine=partial-update": both, "merge-engine=aggregation": both, "merge-engine=first-row": both,
		"deletion-vectors.enabled=true": both, "sequence.field=v": both, "rowkind.field=v": write,
		"changelog-producer=input": write, "changelog-producer=lookup": write, "ignore-delete=true": both,
		"deduplicate.ignore-delete=true": both, "ignore-update-before=true": write, "bucket-function.type=mod": both,
		"data-evolution.enabled=true": both, "row-tracking.enabled=true": write, "pk-clustering-override=true": both,
		"primary-key.nullable=true": both, "file.format=orc": write, "file.format=avro": write,
		"file.format.per.level=0:avro,5:orc": write, "scan.fallback-branch=rt": both, "scan.snapshot-id=3": both,
		"scan.mode=from-timestamp": both, "manifest.format=orc": both, "manifest.format=parquet": both,
		"sequence.snapshot-ordering=true": both, "file.compression=lz4": write, "file.compression=bzip2": write,
		"realtime.enabled=false": write, "bucket=-2": both, "bucket=-1": write, "write.sequence-number-init-mode=snapshot": write,
		"record-level.expire-time=1 d": both, "metadata.iceberg.storage=table-location": write, "type=format-table": both,
		"pk-btree.index.columns=v": write, "commit.callbacks=x": write, "no.such.option=1": both, "branch=dev": both,
		"realtime.deduplicate-key=k": both, "fields.v.unheard-of=1": both, "fields..stats-mode=none": both,
	} {
		key, val, _ := strings.Cut(option, "=")
		s := table(t, true, map[string]string{key: val})
		o, err := ParseOptions(s)
		require.NoError(t, err, option)
		readErr, writeErr := o.CheckRead(s), o.CheckWrite(s)
		require.ErrorIs(t, writeErr, errs.ErrUnsupported, option)
		require.ErrorContains(t, writeErr, val, option)
		if when == both {
			require.ErrorIs(t, readErr, errs.ErrUnsupported, option)
		} else {
			require.NoError(t, readErr, option)
		}
	}
	s := table(t, false, map[string]string{
		"data-file.external-paths": "FILE:///tmp/external", "data-file.external-paths.strategy": "round-robin",
	})
	o, err := ParseOptions(s)
	require.NoError(t, err)
	require.NoError(t, o.CheckRead(s))
	require.ErrorContains(t, o.CheckWrite(s), "data-file.external-paths")
}

func TestOptionsThatAreHarmless(t *testing.T) {
	for _, option := range []string{
		"owner=me", "comment=x", "snapshot.time-retained=1 ms", "snapshot.clean-empty-directories=true", "write-only=true",
		"num-sorted-run.compaction-trigger=3", "num-levels=4", "compaction.size-ratio=1", "commit.force-compact=true",
		"consumer-id=c", "consumer.expiration-time=1 h", "metastore.partitioned-table=true", "file-index.bitmap.columns=v",
		"file-index.in-manifest-threshold=1 b", "manifest.compression=snappy", "write-buffer-size=256 kb", "lookup.cache-rows=1",
		"orc.stripe.size=1", "parquet.use-native=false", "dynamic-bucket.target-row-num=5", "deletion-vectors.enabled=false",
		"deletion-vectors.bitmap64=true", "merge-engine=deduplicate", "changelog-producer=none", "sequence.field.sort-order=ascending",
		"fields.v.aggregate-function=sum", "fields.default-aggregate-function=min", "fields.a.b.stats-mode=none",
		"file.format.per.level=5:orc", "scan.mode=latest", "scan.plan-sort-partition=true", "tag.automatic-creation=none",
		"changelog-file.format=orc", "file-system=local", "realtime.enabled=true", "ignore-delete=false", "branch=main",
		"primary-key.nullable=false", "row-tracking.enabled=false", "bucket-function.type=default", "type=table",
		"file.compression.per.level=0:none", "data-file.thin-mode=true", "realtime.spill-enabled=true",
	} {
		key, val, _ := strings.Cut(option, "=")
		s := table(t, true, map[string]string{key: val})
		o, err := ParseOptions(s)
		require.NoError(t, err, option)
		require.NoError(t, o.CheckWrite(s), option)
	}
}

// No option may be in two classes, or its rule would depend on the order of the
// checks.
func TestOptionClassesAreDisjoint(t *testing.T) {
	keys := slices.Concat(honouredKeys, slices.Collect(maps.Keys(guarded)), slices.Collect(maps.Keys(harmlessKeys)))
	slices.Sort(keys)
	require.Equal(t, slices.Compact(slices.Clone(keys)), keys)
	for key, g := range guarded {
		require.NotEmpty(t, g.why, key)
		require.NotEmpty(t, g.fine, key)
	}
}

func TestColumnsThatAreRefused(t *testing.T) {
	for _, name := range []string{"_KEY_x", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", "_REALTIME_OFFSET", "rowkind"} {
		s := table(t, false, nil)
		s.Fields[1].Name = name
		o, err := ParseOptions(s)
		require.NoError(t, err)
		require.ErrorIs(t, o.CheckRead(s), errs.ErrUnsupported, name)
		require.ErrorContains(t, o.CheckRead(s), name)
	}
}
