package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Commit publishes the files and the progress of a request in one snapshot.
//
//	        +--> observe: chain since adopted, progress, is it there already?
//	        |        |                           yes --> AlreadyThere
//	        |    rules of adoption, follows == progress, bucket count
//	        |        |                            no --> errs.ErrPoisoned, ErrFenced, ErrConflict
//	        |    plan (pure) --> write manifests, lists, progress --> sync
//	back-off|        |
//	        |    create snapshot-N if absent --> published
//	        |        | any error: read snapshot-N back
//	        +-- somebody else's     ours --> published     neither --> errs.ErrOutcomeUnknown
//
// A request without rows publishes nothing, unless it moves the position. Every error other than
// errs.ErrOutcomeUnknown means: not published by this call, and the data files
// are untouched. After errs.ErrOutcomeUnknown no file is deleted; committing the
// same request again finds out.
func (t *Table) Commit(ctx context.Context, req CommitRequest) (CommitResult, error) {
	c, err := t.newCommitter(ctx, &req)
	if err != nil || len(c.folds) == 0 && !req.HasPosition {
		return CommitResult{}, err
	}
	if err := c.checkFiles(ctx); err != nil {
		return CommitResult{}, err
	}
	for {
		c.attempts++
		result, err := c.attempt(ctx)
		if !errors.Is(err, errLost) {
			return result, err
		}
		if err := c.backOff(ctx, err); err != nil {
			return CommitResult{}, err
		}
	}
}

// errLost: somebody else holds the snapshot id that this attempt wanted.
var errLost = errors.New("lost the race for a snapshot id")

// committer holds what stays the same over the attempts of one commit.
type committer struct {
	t          *Table
	req        *CommitRequest
	session    string
	schema     *schema.Schema
	folds      []fold
	files      []string // names of the data files, extra files included
	appendOnly bool     // bucketed append table: sequence numbers are set here
	started    int64    // ms
	attempts   int
}

func (t *Table) newCommitter(ctx context.Context, req *CommitRequest) (*committer, error) {
	if err := path.CheckName(consumerName(req.User)); err != nil || req.User == "" || len(consumerName(req.User)) > userBytesMax {
		return nil, errs.Invalid("commit user %q", req.User)
	}
	if len(req.Position) > progress.MaxPositionBytes {
		return nil, errs.Invalid("position of %d bytes, at most %d", len(req.Position), progress.MaxPositionBytes)
	}
	if caps := t.IO.Capabilities(); !caps.AtomicCreate {
		return nil, errs.Unsupported("the store of table %s cannot create a file so that exactly one writer wins", t.Root)
	}
	s, err := t.Schema(ctx, req.SchemaID)
	if err != nil {
		return nil, err
	}
	if req.BucketCount == 0 {
		req.BucketCount = req.Options.Bucket
	}
	c := &committer{t: t, req: req, session: req.SessionID, schema: s, started: t.Env.Now()}
	if c.session == "" {
		c.session = t.sessionID()
	}
	if c.session == "" {
		return nil, errs.Invalid("a commit to table %s without a session id", t.Root)
	}
	text := &naming{keys: s.PartitionKeys, types: partitionTypes(s), opts: req.Options}
	if c.folds, err = foldMessages(req.Messages, req.BucketCount, text); err != nil {
		return nil, err
	}
	c.appendOnly = !s.IsPrimaryKey()
	if c.files, err = dataFiles(t.Root, req.Options, c.folds); err != nil {
		return nil, err
	}
	return c, nil
}

// checkFiles refuses to publish a file whose sync once failed, and one that is not
// there any more, for instance because a prepared commit waited until a clean-up
// took it for an orphan.
func (c *committer) checkFiles(ctx context.Context) error {
	for _, name := range c.files {
		if _, bad := c.t.unsynced.get(name); bad {
			return errs.Wrap(errs.ErrPoisoned, "not published: prepared file %s may not be durable, an earlier sync of it failed", name)
		}
		if _, err := c.t.IO.Stat(ctx, name); errors.Is(err, fs.ErrNotExist) {
			return errs.Wrap(errs.ErrConflict, "not published: prepared file %s disappeared", name)
		} else if err != nil {
			return fmt.Errorf("not published: %w", err)
		}
	}
	return nil
}

func (c *committer) attempt(ctx context.Context) (CommitResult, error) {
	b, found, err := c.observe(ctx)
	if err != nil || found != nil {
		return c.already(found, b), err
	}
	p, err := planCommit(c.req, c.folds, c.appendOnly, *b)
	if err != nil {
		return CommitResult{}, err
	}
	a := &attempt{committer: c, plan: p}
	if err := a.write(ctx, b); err != nil {
		a.discard(ctx)
		return CommitResult{}, err
	}
	switch outcome, err := a.publish(ctx); outcome {
	case published:
		return a.finish(ctx, b)
	case taken:
		a.discard(ctx)
		return CommitResult{}, errLost
	default:
		return CommitResult{}, errs.Wrap(errs.ErrOutcomeUnknown, "snapshot %d of table %s: %v: commit the same value again to find out", a.plan.snapshot.ID, c.t.Root, err)
	}
}

func (c *committer) already(found *manifest.Snapshot, b *base) CommitResult {
	if found == nil {
		return CommitResult{}
	}
	return CommitResult{SnapshotID: found.ID, Snapshot: found, LatestID: max(found.ID, idOf(b.latest)), Attempts: c.attempts, AlreadyThere: true}
}

// observe reads what the table looks like now and decides whether this request
// may be published on top of it, or already was.
func (c *committer) observe(ctx context.Context) (*base, *manifest.Snapshot, error) {
	t := c.t
	chain, chainErr := t.Follow(ctx, c.req.Adopted, c.req.AdoptedProgress)
	if chainErr != nil && !errors.Is(chainErr, errs.ErrPoisoned) && !errors.Is(chainErr, ErrProgressGone) {
		return nil, nil, fmt.Errorf("not published: %w", chainErr)
	}
	b := &base{}
	if chainErr == nil {
		b.latest, b.progress = chain.Latest, chain.Progress
	}
	if chainErr != nil || c.mayBeThere(chain.Progress) {
		found, latest, err := t.find(ctx, c)
		if err != nil {
			return nil, nil, fmt.Errorf("not published: %w", err)
		}
		if found != nil {
			b.latest = latest
			return b, found, nil
		}
	}
	if chainErr != nil {
		return nil, nil, fmt.Errorf("not published: %w", chainErr)
	}
	for _, s := range c.req.Published {
		if err := t.Verify(ctx, s); err != nil {
			return nil, nil, fmt.Errorf("not published: %w", err)
		}
	}
	if err := c.checkChain(chain); err != nil {
		return nil, nil, fmt.Errorf("not published: %w", err)
	}
	if err := checkFollows(c.folds, chain.Progress, idOf(chain.Latest)); err != nil {
		return nil, nil, err
	}
	return b, nil, c.checkTable(ctx, b)
}

// mayBeThere: an earlier attempt for this request would have moved the progress
// of its buckets and raised the newest identifier of its user, and identifiers
// survive whatever resets progress.
func (c *committer) mayBeThere(p *Progress) bool {
	newest, known := p.Identifiers[c.req.User]
	return cover(c.folds, p) != pending || known && newest >= c.req.Identifier
}

// checkChain applies the rules of adoption for the buckets in memory and for
// those of the request.
func (c *committer) checkChain(chain *Chain) error {
	keys := slices.Clone(c.req.Active)
	for i := range c.folds {
		keys = append(keys, c.folds[i].key)
	}
	var active func(progress.Key) bool
	if c.req.Active != nil {
		set := make(map[progress.Key]bool, len(keys))
		for _, k := range keys {
			set[k] = true
		}
		active = func(k progress.Key) bool { return set[k] }
	}
	if err := chain.Check(active); err != nil {
		return err
	}
	return chain.CheckOverwrites(keys)
}

// checkTable compares the newest schema and the live files with what the request
// was prepared for, and completes the base.
func (c *committer) checkTable(ctx context.Context, b *base) error {
	latest, err := c.t.LatestSchema(ctx)
	if err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	b.schemaID = latest.ID
	if latest.ID != c.schema.ID {
		opts, err := schema.ParseOptions(latest)
		if err != nil {
			return fmt.Errorf("not published: %w", err)
		}
		if opts.Bucket != c.req.BucketCount {
			return errs.Wrap(errs.ErrConflict, "not published: table %s was altered from %d to %d buckets; a rescale needs an overwrite", c.t.Root, c.req.BucketCount, opts.Bucket)
		}
		if !slices.Equal(latest.PrimaryKeys, c.schema.PrimaryKeys) || !slices.Equal(latest.PartitionKeys, c.schema.PartitionKeys) {
			return errs.Wrap(errs.ErrConflict, "not published: keys of table %s were altered by schema %d", c.t.Root, latest.ID)
		}
		if err := c.checkTypes(latest); err != nil {
			return err
		}
	}
	if c.req.BucketCount <= 0 {
		return nil
	}
	sum, err := c.t.summarize(ctx, b.latest)
	if err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	b.maxSeq = sum.maxSeq
	for i := range c.folds {
		part := c.folds[i].key.Partition
		if n, ok := sum.totals[part]; ok && n > 0 && n != c.req.BucketCount {
			return errs.Wrap(errs.ErrConflict, "not published: partition %q of table %s has %d buckets and this commit %d; a rescale needs an overwrite", part, c.t.Root, n, c.req.BucketCount)
		}
	}
	return nil
}

// checkTypes refuses a commit whose columns got another type meanwhile; added,
// renamed and dropped columns are fine.
func (c *committer) checkTypes(latest *schema.Schema) error {
	now := make(map[int]schema.Field, len(latest.Fields))
	for _, f := range latest.Fields {
		now[f.ID] = f
	}
	for _, f := range c.schema.Fields {
		n, ok := now[f.ID]
		if !ok {
			continue
		}
		was, is := f.Type, n.Type
		was.Nullable, is.Nullable = true, true
		if !was.Equal(is) {
			return errs.Wrap(errs.ErrConflict, "not published: column %s of table %s was altered from %s to %s by schema %d", f.Name, c.t.Root, f.Type, n.Type, latest.ID)
		}
	}
	return nil
}

// backOff waits before the next attempt, or says that there is none.
func (c *committer) backOff(ctx context.Context, lost error) error {
	o := &c.req.Options
	if c.attempts > o.CommitMaxRetries {
		return errs.Wrap(errs.ErrConflict, "not published after %d attempts: %v", c.attempts, lost)
	}
	if o.CommitTimeout > 0 && c.t.Env.Now()-c.started >= o.CommitTimeout.Milliseconds() {
		return errs.Wrap(errs.ErrConflict, "not published within %s, %d attempts: %v", o.CommitTimeout, c.attempts, lost)
	}
	if err := c.t.Env.Wait(ctx, backOff(c.attempts, o.CommitMinRetryWait, o.CommitMaxRetryWait)); err != nil {
		return fmt.Errorf("not published after %d attempts: %w", c.attempts, err)
	}
	return nil
}

// backOff doubles from least to most; the waiting side may add jitter.
func backOff(attempt int, least, most time.Duration) time.Duration {
	d := least
	for i := 1; i < attempt && d < most; i++ {
		d *= 2
	}
	return min(d, most)
}
