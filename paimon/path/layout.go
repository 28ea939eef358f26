package path

import (
	"strconv"
	"strings"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// MainBranch is the branch that lives in the table root itself; "" means it too.
const MainBranch = "main"

// PostponeBucket is the bucket number of rows that wait for another engine.
const PostponeBucket = -2

// Root is the directory of a table in a filesystem warehouse.
func Root(warehouse, db, table string) string { return fs.Join(warehouse, db+".db", table) }

// CheckTable refuses database and table names that have no directory of their
// own or are reserved.
func CheckTable(db, table string) error {
	if db == "sys" {
		return errs.Invalid("database %q is reserved", db)
	}
	if strings.ContainsRune(table, '$') {
		return errs.Invalid("table name %q contains '$', which is reserved for system tables", table)
	}
	if err := CheckName(db + ".db"); err != nil || strings.Trim(db, " .") != db || db == "" {
		return errs.Invalid("database name %q is not a clean directory name", db)
	}
	if err := CheckName(table); err != nil || strings.Trim(table, " .") != table {
		return errs.Invalid("table name %q is not a clean directory name", table)
	}
	return nil
}

// Branch is the directory that holds schema/, snapshot/, tag/ and metadata/ of a
// branch. Manifests, index and data files of all branches are in the table root.
func Branch(root, branch string) string {
	if branch == "" || branch == MainBranch {
		return root
	}
	return fs.Join(root, "branch", "branch-"+branch)
}

// SnapshotDir is the directory of a branch's snapshots and hints.
func SnapshotDir(root, branch string) string { return fs.Join(Branch(root, branch), "snapshot") }

// Snapshot is the file of one snapshot.
func Snapshot(root, branch string, id int64) string {
	return fs.Join(SnapshotDir(root, branch), "snapshot-"+strconv.FormatInt(id, 10))
}

// LatestHint is the file that names a snapshot near the newest one.
func LatestHint(root, branch string) string { return fs.Join(SnapshotDir(root, branch), "LATEST") }

// EarliestHint is the file that names a snapshot near the oldest one.
func EarliestHint(root, branch string) string { return fs.Join(SnapshotDir(root, branch), "EARLIEST") }

// SchemaDir is the directory of a branch's schemas.
func SchemaDir(root, branch string) string { return fs.Join(Branch(root, branch), "schema") }

// SchemaFile is the file of one schema version.
func SchemaFile(root, branch string, id int64) string {
	return fs.Join(SchemaDir(root, branch), "schema-"+strconv.FormatInt(id, 10))
}

// Tag is the file of a tag.
func Tag(root, branch, name string) string { return fs.Join(Branch(root, branch), "tag", "tag-"+name) }

// Consumer is the file by which a consumer protects snapshots from expiry.
func Consumer(root, branch, name string) string {
	return fs.Join(Branch(root, branch), "consumer", "consumer-"+name)
}

// Manifest is a manifest, manifest list or index manifest.
func Manifest(root, name string) string { return fs.Join(root, "manifest", name) }

// Index is a payload of an index manifest entry.
func Index(root, name string) string { return fs.Join(root, "index", name) }

// SnapshotID reads the id out of the base name of a snapshot file.
func SnapshotID(base string) (int64, bool) { return idOf(base, "snapshot-") }

// SchemaID reads the id out of the base name of a schema file.
func SchemaID(base string) (int64, bool) { return idOf(base, "schema-") }

// idOf accepts only the spelling that a writer uses, so that two names never
// have one id.
func idOf(base, prefix string) (int64, bool) {
	text, ok := strings.CutPrefix(base, prefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != text {
		return 0, false
	}
	return id, true
}

// Bucket is the directory name of a bucket.
func Bucket(bucket int) string {
	if bucket == PostponeBucket {
		return "bucket-postpone"
	}
	return "bucket-" + strconv.Itoa(bucket)
}

// KV is one partition key with the text of its value.
type KV struct {
	Key   string
	Value string // as PartitionText returns it, not escaped
}

// PartitionDir is "k1=v1/k2=v2" with everything escaped, in the order of keys,
// which must be that of the schema's partition keys; "" when there are none.
// keys and texts have the same length.
func PartitionDir(keys, texts []string) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteByte('/')
		}
		escapeTo(&b, key)
		b.WriteByte('=')
		escapeTo(&b, texts[i])
	}
	return b.String()
}

// CheckPartition refuses partitions whose directory names would be longer than
// MaxComponent bytes or hold what cannot stand in a name.
func CheckPartition(keys, texts []string) error {
	if len(keys) != len(texts) {
		return errs.Invalid("%d partition keys and %d values", len(keys), len(texts))
	}
	for i, key := range keys {
		if err := checkText(texts[i]); err != nil {
			return err
		}
		if n := len(Escape(key)) + 1 + len(Escape(texts[i])); n > MaxComponent {
			return errs.Invalid("partition directory of %q takes %d bytes, at most %d are possible", key, n, MaxComponent)
		}
	}
	return nil
}

// DataDir is the directory of a partition-bucket's data files.
func DataDir(root string, o schema.Options, partition []KV, bucket int) string {
	keys, texts := make([]string, len(partition)), make([]string, len(partition))
	for i, kv := range partition {
		keys[i], texts[i] = kv.Key, kv.Value
	}
	return fs.Join(root, o.PathDirectory, PartitionDir(keys, texts), Bucket(bucket))
}

// DataFile is a data file by the name that its manifest entry gives it, which
// must have passed CheckName.
func DataFile(root string, o schema.Options, partition []KV, bucket int, name string) string {
	return fs.Join(DataDir(root, o, partition, bucket), name)
}
