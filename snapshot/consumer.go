package snapshot

import (
	"context"
	"errors"
	"strconv"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/path"
)

// A consumer file keeps every snapshot from its number on from being expired by
// any engine. Ours names the newest snapshot that carries our progress:
//
//	... 7   8   9  10  11 ...        consumer-tideline-<user>: {"nextSnapshot": 9}
//	    .   .  ours .   .  foreign   7 and 8 may be expired, 9 not until 12 is ours
//
// It exists before the first of our snapshots does, so no crash leaves progress
// unprotected, and a file without any progress in the table says that progress
// once existed.
const consumerPrefix = "tideline-"

func consumerName(user string) string { return consumerPrefix + path.Escape(user) }

// protection is what the consumer file of a user is known to hold.
type protection struct {
	user string
	next int64
}

// protect makes sure that the consumer file of user names id or an older
// snapshot. The file is read once per table handle.
func (t *Table) protect(ctx context.Context, user string, id int64) error {
	if p := t.protected.Load(); p != nil && p.user == user && p.next <= id {
		return nil
	}
	name := path.Consumer(t.Root, t.Branch, consumerName(user))
	next, err := t.consumer(ctx, name)
	switch {
	case err == nil && next > 0 && next <= id:
		t.protected.Store(&protection{user, next})
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errs.ErrCorrupt):
		return err
	}
	if err := t.writeConsumer(ctx, user, id); err != nil {
		return err
	}
	return t.IO.Sync(ctx, name)
}

// raiseConsumer releases the snapshots before id. It is not synced: an older
// number after a power loss keeps more than is needed.
func (t *Table) raiseConsumer(ctx context.Context, user string, id int64) error {
	if p := t.protected.Load(); p != nil && p.user == user && p.next == id {
		return nil
	}
	return t.writeConsumer(ctx, user, id)
}

func (t *Table) writeConsumer(ctx context.Context, user string, id int64) error {
	name := path.Consumer(t.Root, t.Branch, consumerName(user))
	if err := t.IO.Overwrite(ctx, name, []byte("{\n  \"nextSnapshot\" : "+formatID(id)+"\n}")); err != nil {
		return err
	}
	t.protected.Store(&protection{user, id})
	return nil
}

func formatID(id int64) string { return strconv.FormatInt(id, 10) }
