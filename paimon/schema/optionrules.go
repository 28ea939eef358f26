package schema

import (
	"slices"
	"strings"
)

// The rules below put every option of a table into one of three classes:
// honoured (it has a field in Options), guarded (some values would be answered
// wrongly and are refused by name) and harmless (whatever the value, rows read
// and written are right; each entry says why). Everything else is not known and
// refused.

// honouredKeys are the options that Options carries, apart from those of the
// form fields.<column>.stats-mode, and the two of external paths, which
// CheckWrite judges together.
var honouredKeys = []string{
	"bucket", "bucket-key", "file.format", "file.compression", "file.compression.per.level",
	"file.compression.zstd-level", "target-file-size", "parquet.block.size", "file.block-size", "parquet.page.size",
	"parquet.enable.dictionary", "data-file.prefix", "file.suffix.include.compression", "data-file.thin-mode",
	"data-file.path-directory", "index-file-in-data-file-dir", "partition.default-name", "partition.legacy-name",
	"metadata.stats-mode", "metadata.stats-keep-first-n-columns", "metadata.stats-dense-store",
	"manifest.target-file-size", "manifest.merge-min-count", "manifest.full-compaction-threshold-size",
	"manifest.delete-file-drop-stats", "commit.max-retries", "commit.timeout", "commit.min-retry-wait",
	"commit.max-retry-wait", "snapshot.num-retained.min", "snapshot.num-retained.max", "snapshot.time-retained",
	"snapshot.expire.limit", "realtime.enabled", "realtime.read-view-ttl", "realtime.store.stats-mode",
	"read.batch-size", "ignore-delete", "deduplicate.ignore-delete", "first-row.ignore-delete",
	"partial-update.ignore-delete", "data-file.external-paths", "data-file.external-paths.strategy",
}

func honoured(key string) bool {
	if name, ok := columnOption(key, "stats-mode"); ok {
		return name != ""
	}
	return slices.Contains(honouredKeys, key)
}

// guard refuses an option unless its value, in lower case, is one of fine.
type guard struct {
	fine      []string
	writeOnly bool // reading is right with any value
	level0    bool // a list by level, of which only level 0 matters
	why       string
}

var off = []string{"false"}

var guarded = map[string]guard{
	"merge-engine":    {fine: []string{"deduplicate"}, why: "only the merge engine deduplicate is known"},
	"manifest.format": {fine: []string{"avro"}, why: "only manifests in Avro are read and written"},
	"sequence.field":  {fine: []string{""}, why: "versions are ordered by the sequence number only"},
	"sequence.auto-padding": {
		fine: []string{""}, why: "versions are ordered by the sequence number only",
	},
	"sequence.snapshot-ordering": {fine: off, why: "versions are ordered by the sequence number only"},
	"rowkind.field": {
		fine: []string{""}, writeOnly: true, why: "row kinds come with the write and not out of a column",
	},
	"ignore-update-before":     {fine: off, writeOnly: true, why: "rows of kind -U are always applied"},
	"changelog-producer":       {fine: []string{"none"}, writeOnly: true, why: "no changelog files are written"},
	"deletion-vectors.enabled": {fine: off, why: "deletion vectors are neither applied nor maintained"},
	"bucket-function.type":     {fine: []string{"default"}, why: "rows are hashed to buckets by the default function only"},
	"data-evolution.enabled":   {fine: off, why: "files that hold some of the columns are not joined"},
	"row-tracking.enabled":     {fine: off, writeOnly: true, why: "no row ids are assigned at commit"},
	"pk-clustering-override":   {fine: off, why: "files are sorted by the primary key only"},
	"primary-key.nullable":     {fine: off, why: "primary-key columns hold no nulls"},
	"file.format.per.level": {
		fine: []string{"parquet"}, writeOnly: true, level0: true, why: "only parquet is written to level 0",
	},
	"scan.fallback-branch": {fine: []string{""}, why: "partitions are not looked up in another branch"},
	"scan.mode": {
		fine: []string{"default", "latest", "latest-full", "full"}, why: "a plain read is of the newest snapshot",
	},
	"write.sequence-number-init-mode": {
		fine: []string{"scan"}, writeOnly: true, why: "the largest sequence number is found in the files only",
	},
	"type":               {fine: []string{"table"}, why: "only managed tables are known"},
	"query-auth.enabled": {fine: off, why: "row and column rights are not enforced"},
	"branch":             {fine: []string{"main"}, why: "the branch is chosen when the table is opened"},
	"metadata.iceberg.storage": {
		fine: []string{"disabled"}, writeOnly: true, why: "no Iceberg metadata is written beside the snapshots",
	},
	"commit.callbacks": {fine: []string{""}, writeOnly: true, why: "callbacks of another engine are not run"},
}

// guardedPrefix refuses every option of a family.
type guardedPrefix struct {
	prefix    string
	writeOnly bool
	why       string
}

var guardedPrefixes = []guardedPrefix{
	{prefix: "scan.", why: "a plain read is of the newest snapshot"},
	{prefix: "incremental-between", why: "changes between snapshots are not read"},
	{prefix: "record-level.", why: "rows do not expire by a column"},
	{prefix: "global-index.", writeOnly: true, why: "no global index is maintained"},
	{prefix: "pk-btree.", writeOnly: true, why: "no global index is maintained"},
	{prefix: "commit.callback.", writeOnly: true, why: "callbacks of another engine are not run"},
	{prefix: "partition.mark-done", writeOnly: true, why: "partitions are not marked done"},
}

// Reasons why options are harmless.
const (
	label      = "describes the table for people and catalogs"
	placement  = "says where or through what the table was opened, not what is in it"
	compacting = "tunes compaction, which changes the files and never the rows"
	buffering  = "tunes memory, spilling or parallelism of another engine's writer"
	planning   = "tunes splits and parallelism of another engine's reader"
	streaming  = "concerns streaming reads and their bookkeeping"
	upkeep     = "asks for maintenance that some engine does at some time"
	layout     = "suggests how files are laid out; any layout is read"
	accelerate = "an optional accelerator: reading without it gives the same rows"
	otherFiles = "concerns files that are not written here, or a format decided per file"
	otherMerge = "has a meaning only together with another option that is itself refused"
)

var harmlessKeys = map[string]string{
	"owner": label, "comment": label,
	"path": placement, "auto-create": placement, "file-system": placement,
	"write-only":      compacting, // rows are only ever appended here
	"num-levels":      compacting,
	"page-size":       buffering,
	"sort-engine":     buffering,
	"cache-page-size": buffering, "async-file-write": buffering, "commit.user-prefix": label,
	"commit.force-compact": compacting, "commit.force-create-snapshot": upkeep,
	"full-compaction.delta-commits": compacting, "bucket-append-ordered": layout,
	"dynamic-partition-overwrite": otherMerge, // partitions are overwritten by other engines only
	"sequence.field.sort-order":   otherMerge,
	"deletion-vectors.bitmap64":   otherMerge, "deletion-vectors.merge-on-read": otherMerge,
	"deletion-vector.index-file.target-size": otherMerge,
	"manifest.compression":                   layout, // an Avro file names its codec
	"force-lookup":                           compacting, "lookup-wait": compacting,
	"delete-file.thread-num": upkeep,
	"consumer-id":            streaming, "end-input.watermark": streaming, "spill-compression": buffering,
	"realtime.spill-enabled":   buffering, // memory is bounded with or without it
	"scan.plan-sort-partition": planning, "scan.manifest.parallelism": planning,
	"scan.max-splits-per-task": planning, "scan.infer-parallelism": planning, "scan.parallelism": planning,
	"scan.split-enumerator.batch-size": planning, "scan.split-enumerator.mode": planning,
	"scan.infer-parallelism.max": planning, "scan.remove-normalize": streaming,
	"fields.default-aggregate-function": otherMerge,
}

var harmlessPrefixes = []struct{ prefix, why string }{
	{"metastore.", label},
	{"file-operation.", placement},
	{"compaction.", compacting}, {"num-sorted-run.", compacting}, {"lookup.", compacting},
	{"lookup-compact", compacting}, {"sort-compaction.", compacting}, {"clustering.", compacting},
	{"write-buffer-", buffering}, {"write-buffer.", buffering}, {"write-max-writers-to-spill", buffering},
	{"write-manifest-cache", buffering}, {"write.", buffering}, {"local-sort.", buffering}, {"sort-spill-", buffering},
	{"spill-compression.", buffering}, {"sink.", buffering}, {"local-merge-buffer-size", buffering},
	{"source.split.", planning}, {"read.", planning}, {"manifest.", layout},
	{"streaming-read-", streaming}, {"streaming.", streaming}, {"continuous.", streaming}, {"consumer.", streaming},
	{"log.", streaming}, {"snapshot.watermark-", streaming},
	{"snapshot.", upkeep}, {"changelog.", upkeep}, {"tag.", upkeep}, {"partition.expiration-", upkeep},
	{"partition.timestamp-", upkeep}, {"partition.idle-time", upkeep}, {"partition.time-interval", upkeep},
	{"partition.sink-strategy", buffering}, {"delete.force-produce-changelog", otherFiles},
	{"file-index.", accelerate}, {"global-index.", accelerate}, {"pk-btree.", accelerate},
	{"parquet.", layout}, {"orc.", otherFiles}, {"avro.", otherFiles}, {"changelog-file.", otherFiles},
	{"changelog-producer.", otherMerge}, {"dynamic-bucket.", otherMerge}, {"cross-partition-upsert.", otherMerge},
	{"postpone.", otherMerge}, {"aggregation.", otherMerge}, {"partial-update.", otherMerge},
	{"metadata.iceberg.", otherMerge},
}

// columnSuffixes are the options fields.<column>.<suffix> that only the merge
// engines aggregation and partial-update look at.
var columnSuffixes = []string{
	"aggregate-function", "ignore-retract", "list-agg-delimiter", "sequence-group", "distinct", "nested-key",
	"count-limit",
}

// harmlessFamily says why an option needs no attention, by its family.
func harmlessFamily(key string) (string, bool) {
	for _, suffix := range columnSuffixes {
		if name, ok := columnOption(key, suffix); ok && name != "" {
			return otherMerge, true
		}
	}
	for _, p := range harmlessPrefixes {
		if strings.HasPrefix(key, p.prefix) {
			return p.why, true
		}
	}
	return "", false
}
