package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
)

// Tag reads the snapshot that a tag keeps; fs.ErrNotExist when there is no such
// tag.
func (t *Table) Tag(ctx context.Context, name string) (*manifest.Snapshot, error) {
	if err := path.CheckName("tag-" + name); err != nil {
		return nil, errs.Invalid("tag name %q of table %s cannot be a file name", name, t.Root)
	}
	s, err := t.readSnapshotFile(ctx, path.Tag(t.Root, t.Branch, name))
	if err != nil {
		return nil, fmt.Errorf("tag %q of table %s: %w", name, t.Root, err)
	}
	return s, nil
}

// Tags lists the names of the tags.
func (t *Table) Tags(ctx context.Context) ([]string, error) {
	return t.named(ctx, fs.Join(t.branchRoot(), "tag"), "tag-", false)
}

// Branches lists the names of the branches of the main table.
func (t *Table) Branches(ctx context.Context) ([]string, error) {
	return t.named(ctx, fs.Join(t.Root, "branch"), "branch-", true)
}

// Consumers returns the next snapshot id of every consumer. Files of other
// programs that do not parse are left out.
func (t *Table) Consumers(ctx context.Context) (map[string]int64, error) {
	names, err := t.named(ctx, t.consumerDir(), "consumer-", false)
	if err != nil {
		return nil, err
	}
	next := make(map[string]int64, len(names))
	for _, name := range names {
		id, err := t.consumer(ctx, path.Consumer(t.Root, t.Branch, name))
		switch {
		case err == nil:
			next[name] = id
		case errors.Is(err, errs.ErrCorrupt), errors.Is(err, fs.ErrNotExist):
		default:
			return nil, err
		}
	}
	return next, nil
}

func (t *Table) consumerDir() string { return fs.Join(t.branchRoot(), "consumer") }

func (t *Table) consumer(ctx context.Context, name string) (int64, error) {
	data, err := fs.ReadAll(ctx, t.IO, name, hintBytesMax)
	if err != nil {
		return 0, err
	}
	var content struct {
		NextSnapshot *int64 `json:"nextSnapshot"`
	}
	if err := json.Unmarshal(data, &content); err != nil || content.NextSnapshot == nil {
		return 0, errs.Corrupt(name, -1, "no nextSnapshot")
	}
	return *content.NextSnapshot, nil
}

func (t *Table) named(ctx context.Context, dir, prefix string, dirs bool) ([]string, error) {
	entries, err := t.IO.List(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name, prefix); ok && name != "" && e.IsDir == dirs {
			names = append(names, name)
		}
	}
	return names, nil
}
