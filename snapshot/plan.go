package snapshot

import (
	"fmt"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/progress"
)

// coverage says where the newest progress stands relative to the ranges of a
// request.
type coverage int

const (
	pending coverage = iota // every bucket ends where its range continues
	covered                 // every bucket ends at or above its range
	partly                  // anything else
)

func cover(folds []fold, p *Progress) coverage {
	at, past := 0, 0
	for i := range folds {
		switch end := p.End(folds[i].key); {
		case end == folds[i].follows:
			at++
		case end >= folds[i].end:
			past++
		}
	}
	switch len(folds) {
	case at:
		return pending
	case past:
		return covered
	}
	return partly
}

// checkFollows is the fence of a publication: the newest progress must be exactly
// what each range continues, so that neither a gap nor a range that somebody else
// published can be published over.
func checkFollows(folds []fold, p *Progress, at int64) error {
	var behind *fold
	for i := range folds {
		f := &folds[i]
		switch end := p.End(f.key); {
		case end > f.follows:
			return errs.Wrap(errs.ErrFenced, "not published: %s ends at %d in snapshot %d, this commit is [%d, %d) after %d: somebody else committed there",
				keyText(f.key), end, at, f.begin, f.end, f.follows)
		case end < f.follows && behind == nil:
			behind = f
		}
	}
	if behind != nil {
		return errs.Wrap(errs.ErrConflict, "not published: %s ends at %d in snapshot %d, this commit continues %d: an earlier prepare is missing",
			keyText(behind.key), p.End(behind.key), at, behind.follows)
	}
	return nil
}

// base is what a commit is planned against.
type base struct {
	latest   *manifest.Snapshot // nil: the table has no snapshot
	schemaID int64              // newest schema of the table
	progress *Progress
	maxSeq   map[progress.Key]int64 // bucketed append tables only
}

// plan is one attempt's content, before names are given to its files.
type plan struct {
	entries  []manifest.Entry
	progress *Progress // as the new snapshot will carry it
	delta    int64     // records added
	snapshot manifest.Snapshot
}

// planCommit is pure: it rebases the files and the progress of a request onto b.
func planCommit(req *CommitRequest, folds []fold, appendOnly bool, b base) (plan, error) {
	after, err := b.progress.advance(req, folds)
	if err != nil {
		return plan{}, fmt.Errorf("not published: %w", err)
	}
	p := plan{progress: after}
	for i := range folds {
		f := &folds[i]
		files := f.files
		if appendOnly {
			next := int64(0)
			if top, ok := b.maxSeq[f.key]; ok {
				next = top + 1
			}
			var ok bool
			if files, ok = renumber(files, next); !ok {
				return plan{}, errs.Invalid("not published: sequence numbers of %s would pass %d", keyText(f.key), int64(maxSequence))
			}
		}
		for _, file := range files {
			p.entries = append(p.entries, manifest.Entry{
				Kind: manifest.Add, Partition: f.partition, PartArity: len(f.kvs),
				Bucket: f.key.Bucket, TotalBuckets: req.BucketCount, File: file,
			})
			p.delta += file.Rows
		}
	}
	p.snapshot = nextSnapshot(req, b, p.delta)
	return p, nil
}

// renumber gives the files of an append table the sequence numbers next, next+1,
// ... in their order: a per-bucket row counter that only the metadata holds. It
// refuses to pass maxSequence.
func renumber(files []manifest.FileMeta, next int64) ([]manifest.FileMeta, bool) {
	out := make([]manifest.FileMeta, len(files))
	for i, f := range files {
		rows := max(f.Rows, 1)
		if next > maxSequence-rows {
			return nil, false
		}
		f.MinSeq, f.MaxSeq = next, next+rows-1
		next += rows
		out[i] = f
	}
	return out, true
}

// nextSnapshot fills what follows from the request and the base (FORMAT §3.1).
func nextSnapshot(req *CommitRequest, b base, delta int64) manifest.Snapshot {
	s := manifest.Snapshot{
		Version: 3, ID: 1, SchemaID: b.schemaID,
		CommitUser: req.User, CommitIdentifier: req.Identifier, CommitKind: manifest.KindAppend,
		TotalRecordCount: delta, DeltaRecordCount: delta,
		WriterVersion: "tideline",
		NextRowID:     new(int64),
	}
	if l := b.latest; l != nil {
		s.ID = l.ID + 1
		s.TimeMillis = l.TimeMillis
		s.TotalRecordCount = l.TotalRecordCount + delta
		s.IndexManifest = l.IndexManifest
		s.Watermark = l.Watermark
		s.NextRowID = l.NextRowID
		if l.SchemaID == s.SchemaID {
			s.Statistics = l.Statistics
		}
	}
	return s
}

// mergeGroups chooses runs of neighbouring manifests [from, to) to rewrite into
// one, so that lists stay short: small ones are collected until they reach the
// target size, the tail only when it has at least minCount of them (FORMAT §4.6).
func mergeGroups(list []manifest.ListEntry, target int64, minCount int) [][2]int {
	var groups [][2]int
	from, size := 0, int64(0)
	for i := range list {
		size += list[i].Size
		if size < target {
			continue
		}
		if i > from {
			groups = append(groups, [2]int{from, i + 1})
		}
		from, size = i+1, 0
	}
	if n := len(list) - from; n > 1 && n >= minCount {
		groups = append(groups, [2]int{from, len(list)})
	}
	return groups
}
