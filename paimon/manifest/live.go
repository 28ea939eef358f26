package manifest

import (
	"encoding/binary"
	"slices"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
)

// Identity is what makes two entries the same file (FORMAT §4.5): partition,
// bucket, level, file name, extra files, embedded index and external path. The
// text is for comparing and for map keys only. A level change keeps the name, so
// nothing shorter is an identity.
func Identity(e Entry) string {
	return string(appendIdentity(nil, &e))
}

func appendIdentity(dst []byte, e *Entry) []byte {
	part := e.Partition
	if part == nil {
		part = row.EmptyRow
	}
	dst = binary.AppendVarint(dst, int64(e.Bucket))
	dst = binary.AppendVarint(dst, int64(e.File.Level))
	dst = appendText(dst, part)
	dst = appendText(dst, e.File.Name)
	dst = binary.AppendVarint(dst, int64(len(e.File.ExtraFiles)))
	for _, x := range e.File.ExtraFiles {
		dst = appendText(dst, x)
	}
	// Null and empty differ: 0 stands for null, 1 for a value.
	if e.File.EmbeddedIndex == nil {
		dst = append(dst, 0)
	} else {
		dst = appendText(append(dst, 1), e.File.EmbeddedIndex)
	}
	if e.File.ExternalPath == nil {
		return append(dst, 0)
	}
	return appendText(append(dst, 1), *e.File.ExternalPath)
}

// Live gives the files of a table state: the ADD entries without a DELETE of the
// same identity, in the order of entries (FORMAT §4.6). The order of ADD and DELETE
// plays no part, and a DELETE without ADD is no error: readers may have skipped the
// manifest that holds the other half. errs.ErrCorrupt when an identity is added
// twice. The result shares memory with entries.
func Live(entries []Entry) ([]Entry, error) {
	added, deleted, err := cancel(entries)
	if err != nil {
		return nil, err
	}
	live := make([]Entry, 0, max(0, len(added)-len(deleted)))
	for i := range entries {
		if entries[i].Kind == Add && !entries[i].cancelled(deleted) {
			live = append(live, entries[i])
		}
	}
	return live, nil
}

// Merge gives the entries of one manifest that replaces the given ones: pairs of
// ADD and DELETE are dropped, everything else stays in order, a DELETE without its
// ADD too because that cancels an ADD of an earlier manifest. errs.ErrCorrupt when an
// identity is added twice.
func Merge(manifests ...[]Entry) ([]Entry, error) {
	entries := slices.Concat(manifests...)
	added, deleted, err := cancel(entries)
	if err != nil {
		return nil, err
	}
	kept := entries[:0]
	for _, e := range entries {
		other := deleted
		if e.Kind == Delete {
			other = added
		}
		if !e.cancelled(other) {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// cancelled says whether the other half of e is in a set of identities.
func (e *Entry) cancelled(set map[string]struct{}) bool {
	if len(set) == 0 {
		return false
	}
	var buf [256]byte
	_, ok := set[string(appendIdentity(buf[:0], e))]
	return ok
}

// cancel collects the identities that are added and those that are deleted.
func cancel(entries []Entry) (added, deleted map[string]struct{}, err error) {
	added = make(map[string]struct{}, len(entries))
	deleted = make(map[string]struct{})
	for i := range entries {
		e := &entries[i]
		id := Identity(*e)
		if e.Kind == Delete {
			deleted[id] = struct{}{}
			continue
		}
		if _, twice := added[id]; twice {
			return nil, nil, errs.Corrupt("manifests", -1, "file %q is added twice to bucket %d at level %d",
				e.File.Name, e.Bucket, e.File.Level)
		}
		added[id] = struct{}{}
	}
	return added, deleted, nil
}
