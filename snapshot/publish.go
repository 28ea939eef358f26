package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
)

// manifestEntriesMax bounds the entries of one new manifest; at about a kilobyte
// each it stays below the usual target size.
const manifestEntriesMax = 8192

// attempt is one try to publish: its plan and the files that only it refers to.
type attempt struct {
	*committer
	plan    plan
	own     []string // full names, deleted when the attempt surely lost
	written map[string][]manifest.Entry
	content []byte
}

// write stores everything that the snapshot will refer to and makes it durable.
func (a *attempt) write(ctx context.Context, b *base) error {
	if err := a.t.protect(ctx, a.req.User, a.needed(b)); err != nil {
		return fmt.Errorf("not published: consumer file: %w", err)
	}
	id := a.t.Env.UUID()
	s := &a.plan.snapshot
	s.UUID = id
	s.TimeMillis = max(s.TimeMillis, a.t.Env.Now())
	baseList, err := a.baseList(ctx, b, id)
	if err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	deltaList, err := a.manifests(ctx, id, len(a.own), a.plan.entries)
	if err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	if s.BaseManifestList, s.BaseManifestListSize, err = a.list(ctx, id, 0, baseList); err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	if s.DeltaManifestList, s.DeltaManifestListSize, err = a.list(ctx, id, 1, deltaList); err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	if err := a.writeProgress(ctx); err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	return a.sync(ctx)
}

// needed is the oldest snapshot that must survive until this one is there: the
// one whose progress is inherited, else the new one itself.
func (a *attempt) needed(b *base) int64 {
	if b.progress.Found && b.progress.FromSnapshot > 0 {
		return b.progress.FromSnapshot
	}
	return a.plan.snapshot.ID
}

// sync waits once for all files of the stage. Bytes whose sync failed cannot be
// trusted any more, and a second sync may claim success for lost pages, so the
// prepared files are given up with their session.
func (a *attempt) sync(ctx context.Context) error {
	err := a.t.IO.Sync(ctx, append(a.own[:len(a.own):len(a.own)], a.files...)...)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("not published: %w", err)
	case errors.Is(err, fs.ErrNotExist):
		return errs.Wrap(errs.ErrConflict, "not published: a prepared file disappeared: %v", err)
	}
	for _, name := range a.files {
		a.t.unsynced.put(name, true, 1)
	}
	return fmt.Errorf("not published, prepared files may not be durable (%w): %w", err, errs.ErrPoisoned)
}

// baseList is everything that the base refers to, short manifests merged.
func (a *attempt) baseList(ctx context.Context, b *base, id string) ([]manifest.ListEntry, error) {
	if b.latest == nil {
		return nil, nil
	}
	list, err := a.t.manifestList(ctx, b.latest)
	if err != nil {
		return nil, err
	}
	var merged []manifest.ListEntry
	done := 0
	for _, g := range mergeGroups(list, a.req.Options.ManifestTargetSize, a.req.Options.ManifestMergeMin) {
		parts := make([][]manifest.Entry, 0, g[1]-g[0])
		for i := g[0]; i < g[1]; i++ {
			part, err := a.t.manifest(ctx, b.latest, list[i].Name)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		entries, err := manifest.Merge(parts...)
		if err != nil {
			return nil, err
		}
		rewritten, err := a.manifests(ctx, id, len(a.own), entries)
		if err != nil {
			return nil, err
		}
		merged = append(append(merged, list[done:g[0]]...), rewritten...)
		done = g[1]
	}
	return append(merged, list[done:]...), nil
}

// manifests writes entries as manifests number first, first+1, ...
func (a *attempt) manifests(ctx context.Context, id string, first int, entries []manifest.Entry) ([]manifest.ListEntry, error) {
	var list []manifest.ListEntry
	for len(entries) > 0 {
		part := entries[:min(len(entries), manifestEntriesMax)]
		entries = entries[len(part):]
		name := "manifest-" + id + "-" + strconv.Itoa(first+len(list))
		data, err := manifest.Write(part, syncMarker(name))
		if err != nil {
			return nil, err
		}
		if err := a.put(ctx, path.Manifest(a.t.Root, name), data); err != nil {
			return nil, err
		}
		summary, err := manifest.SummarizeList(name, int64(len(data)), part, partitionTypes(a.schema))
		if err != nil {
			return nil, err
		}
		list = append(list, summary)
		if a.written == nil {
			a.written = map[string][]manifest.Entry{}
		}
		a.written[name] = part
	}
	return list, nil
}

func (a *attempt) list(ctx context.Context, id string, n int, entries []manifest.ListEntry) (string, *int64, error) {
	name := "manifest-list-" + id + "-" + strconv.Itoa(n)
	data, err := manifest.WriteList(entries, syncMarker(name))
	if err != nil {
		return "", nil, err
	}
	size := int64(len(data))
	return name, &size, a.put(ctx, path.Manifest(a.t.Root, name), data)
}

// syncMarker derives the block marker of an Avro file from its unique name.
func syncMarker(name string) (marker [16]byte) {
	sum := sha256.Sum256([]byte(name))
	copy(marker[:], sum[:])
	return marker
}

// put writes one new file. Its name counts as this attempt's own from the start,
// because a failed write may have left something behind.
func (a *attempt) put(ctx context.Context, name string, data []byte) error {
	a.own = append(a.own, name)
	w, err := a.t.IO.Create(ctx, name)
	if err != nil {
		return err
	}
	if _, err := fs.WriteAll(w, data); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Commit()
}

type outcome int

const (
	published outcome = iota
	taken             // the id belongs to somebody else for good
	unknown
)

// publish creates the snapshot file. Whatever error that gives, the stored bytes
// decide: ours are ours even when the reply was lost, and only the bytes of
// somebody else prove that ours can never appear under this id.
func (a *attempt) publish(ctx context.Context) (outcome, error) {
	name := path.Snapshot(a.t.Root, a.t.Branch, a.plan.snapshot.ID)
	a.content = a.plan.snapshot.Marshal()
	err := a.t.IO.CreateIfAbsent(ctx, name, a.content)
	if err == nil {
		return published, nil
	}
	stored, readErr := fs.ReadAll(ctx, a.t.IO, name, snapshotBytesMax)
	if readErr != nil {
		return unknown, fmt.Errorf("%w; reading it back: %w", err, readErr)
	}
	if bytes.Equal(stored, a.content) {
		return published, nil
	}
	if _, parseErr := manifest.ParseSnapshot(stored, name); parseErr != nil {
		return unknown, fmt.Errorf("%w; what is stored is not a snapshot: %w", err, parseErr)
	}
	return taken, err
}

// finish does what a published commit still owes. Nothing in it can undo the
// commit, so its failures are warnings.
func (a *attempt) finish(ctx context.Context, b *base) (CommitResult, error) {
	id := a.plan.snapshot.ID
	snap, err := manifest.ParseSnapshot(a.content, path.Snapshot(a.t.Root, a.t.Branch, id))
	if err != nil {
		return CommitResult{}, errs.Wrap(errs.ErrOutcomeUnknown, "snapshot %d was published but does not parse: %v", id, err)
	}
	r := CommitResult{SnapshotID: id, Snapshot: snap, LatestID: id, Attempts: a.attempts, Progress: a.plan.progress}
	warn := func(err error) {
		if err != nil {
			r.Warnings = append(r.Warnings, err)
		}
	}
	for name, entries := range a.written {
		a.t.manifests.put(name, entries, len(entries)+1)
	}
	hint := []byte(strconv.FormatInt(id, 10))
	warn(a.t.IO.Overwrite(ctx, path.LatestHint(a.t.Root, a.t.Branch), hint))
	if b.latest == nil {
		warn(a.t.IO.Overwrite(ctx, path.EarliestHint(a.t.Root, a.t.Branch), hint))
	}
	warn(a.t.raiseConsumer(ctx, a.req.User, id))
	return r, nil
}

// discard deletes the files of an attempt that surely was not and will not be
// published. Data files stay: the next attempt needs them. A failure leaves
// orphans, which any clean-up of the table finds.
func (a *attempt) discard(ctx context.Context) {
	for _, name := range a.own {
		_ = a.t.IO.Delete(ctx, name)
	}
}

// DeleteFiles removes the data files of prepared messages that are given up. Call
// it only when they surely were never and will never be published. It goes on
// after an error and returns all of them.
func (t *Table) DeleteFiles(ctx context.Context, messages []Message) error {
	s, err := t.LatestSchema(ctx)
	if err != nil {
		return err
	}
	text, err := newNaming(s)
	if err != nil {
		return err
	}
	folds, err := foldMessages(messages, text.opts.Bucket, text)
	if err != nil {
		return err
	}
	files, err := dataFiles(t.Root, text.opts, folds)
	if err != nil {
		return err
	}
	for _, name := range files {
		err = errors.Join(err, t.IO.Delete(ctx, name))
	}
	return err
}
