package snapshot

import (
	"cmp"
	"math"
	"slices"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Message is what one prepare produced for one partition-bucket.
type Message struct {
	Partition []byte // BinaryRow bytes without arity
	// PartitionText is the text of progress.Canonical; when given it must be that
	// of Partition.
	PartitionText   string
	PartitionValues []row.Value // not read by a commit
	Bucket          int
	// Follows is the committed end that the range continues; Begin may lie above
	// it where offsets have gaps. The range is [Begin, End).
	Follows, Begin, End int64
	// Files are new level-0 files. None: the rows cancelled each other out, and
	// only the progress advances.
	Files []manifest.FileMeta
}

// CommitRequest is one prepared commit. The same value may be committed again
// after errs.ErrConflict or errs.ErrOutcomeUnknown; it is not changed.
type CommitRequest struct {
	User       string
	Identifier int64
	Messages   []Message
	// Position stands for exactly the writes below the ends of the ranges. Without
	// HasPosition the snapshot has none: the previous one would be replayed twice.
	Position    []byte
	HasPosition bool
	SchemaID    int64
	// Adopted and AdoptedProgress are the session's; what came after them is
	// checked by the rules of adoption on every attempt.
	Adopted         *manifest.Snapshot
	AdoptedProgress *Progress
	// Active lists the buckets that the session holds in memory; those of the
	// messages are added. nil: every bucket that has progress is active.
	Active []progress.Key
	// Published are snapshots of this session that it has not adopted yet: each
	// must still be in the table unchanged.
	Published   []*manifest.Snapshot
	SessionID   string // lower-case uuid; "": that of Table.Session
	Options     schema.Options
	BucketCount int // -1 for unaware buckets; 0: as in Options
}

// userBytesMax leaves room for the consumer file's prefix in one path component.
const userBytesMax = 200

// CommitResult says what a commit did. The zero value answers a request with
// nothing prepared and no position: no snapshot, no error.
type CommitResult struct {
	// SnapshotID and Snapshot are the snapshot that holds the commit.
	SnapshotID int64
	Snapshot   *manifest.Snapshot
	// LatestID is the newest snapshot known when the commit ended; it is higher
	// than SnapshotID where a retry found an older commit of the same value.
	LatestID int64
	Attempts int
	// AlreadyThere: an earlier attempt had published exactly these files.
	AlreadyThere bool
	// Progress holds at Snapshot; nil when AlreadyThere.
	Progress *Progress
	// Warnings are failures after publication that change nothing about it: hint
	// files and the consumer file.
	Warnings []error
}

// fold is one partition-bucket of a request: messages that continue each other.
type fold struct {
	key                 progress.Key
	partition           []byte
	kvs                 []path.KV
	follows, begin, end int64
	files               []manifest.FileMeta
}

// foldMessages validates the messages and joins those of one bucket, which must
// continue each other; the result is sorted by partition and bucket.
func foldMessages(messages []Message, buckets int, text *naming) ([]fold, error) {
	folds := make([]fold, 0, len(messages))
	for i := range messages {
		m := &messages[i]
		if m.Begin == m.End && len(m.Files) == 0 {
			continue
		}
		if err := checkMessage(m, buckets); err != nil {
			return nil, err
		}
		p, err := text.decode(m.Partition)
		if err != nil {
			return nil, errs.Invalid("message %d: partition: %v", i, err)
		}
		if m.PartitionText != "" && m.PartitionText != p.text {
			return nil, errs.Invalid("message %d: partition %q where the partition row says %q", i, m.PartitionText, p.text)
		}
		folds = append(folds, fold{
			key: p.key(m.Bucket), partition: m.Partition, kvs: p.kvs,
			follows: m.Follows, begin: m.Begin, end: m.End, files: m.Files,
		})
	}
	slices.SortStableFunc(folds, func(a, b fold) int {
		return cmp.Or(compareKeys(a.key, b.key), cmp.Compare(a.begin, b.begin))
	})
	return joinFolds(folds)
}

func checkMessage(m *Message, buckets int) error {
	switch {
	case buckets > 0 && (m.Bucket < 0 || m.Bucket >= buckets), buckets <= 0 && m.Bucket != 0:
		return errs.Invalid("bucket %d of a table with %d buckets", m.Bucket, buckets)
	case m.Follows < 0 || m.Begin < m.Follows || m.End <= m.Begin || m.End == math.MaxInt64:
		return errs.Invalid("bucket %d: range [%d, %d) after %d", m.Bucket, m.Begin, m.End, m.Follows)
	}
	for i := range m.Files {
		f := &m.Files[i]
		if err := path.CheckName(f.Name); err != nil || f.Rows < 0 || f.MinSeq > f.MaxSeq || f.MaxSeq == math.MaxInt64 {
			return errs.Invalid("bucket %d: metadata of file %q", m.Bucket, f.Name)
		}
	}
	return nil
}

// dataFiles are the full names of all files of the folds, side files included.
func dataFiles(root string, opts schema.Options, folds []fold) ([]string, error) {
	var names []string
	for i := range folds {
		dir := path.DataDir(root, opts, folds[i].kvs, folds[i].key.Bucket)
		for k := range folds[i].files {
			f := &folds[i].files[k]
			if f.ExternalPath != nil {
				return nil, errs.Unsupported("committing data file %s outside the table", f.Name)
			}
			names = append(names, fs.Join(dir, f.Name))
			for _, extra := range f.ExtraFiles {
				if err := path.CheckName(extra); err != nil {
					return nil, errs.Invalid("side file %q of data file %s", extra, f.Name)
				}
				names = append(names, fs.Join(dir, extra))
			}
		}
	}
	return names, nil
}

func joinFolds(folds []fold) ([]fold, error) {
	joined := folds[:0:0]
	names := map[string]bool{}
	for _, f := range folds {
		for i := range f.files {
			name := f.key.Partition + "\x00" + f.files[i].Name
			if names[name] {
				return nil, errs.Invalid("%s: file %s is committed twice", keyText(f.key), f.files[i].Name)
			}
			names[name] = true
		}
		if n := len(joined); n > 0 && joined[n-1].key == f.key {
			last := &joined[n-1]
			if f.follows != last.end {
				return nil, errs.Invalid("%s: range [%d, %d) follows %d, the one before ends at %d", keyText(f.key), f.begin, f.end, f.follows, last.end)
			}
			last.end = f.end
			last.files = slices.Concat(last.files, f.files)
			continue
		}
		joined = append(joined, f)
	}
	return joined, nil
}

func compareKeys(a, b progress.Key) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Bucket, b.Bucket))
}
