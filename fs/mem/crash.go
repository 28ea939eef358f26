package mem

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// The kinds of change that a crash may lose.
const (
	KindBytes   = "bytes"   // one page of unsynced file content
	KindCreate  = "create"  // a file's new name
	KindDelete  = "delete"  // a name that was removed
	KindReplace = "replace" // a name that leads to other content now
	KindDir     = "dir"     // a new directory, with everything below it
)

// pageSize is the unit in which unsynced bytes are lost.
const pageSize = 4096

// Keep decides, change by change, what survives a crash. Names are
// slash-separated from the root without a leading slash; pages of one file are
// asked for in order under the same name.
type Keep func(kind string, name string) bool

// KeepNone loses everything that was not synced: the harshest honest disk.
func KeepNone(string, string) bool { return false }

// KeepAll loses nothing: the process died, the machine did not.
func KeepAll(string, string) bool { return true }

// KeepFraction keeps about percent of the changes, drawn from seed. Equal seeds
// over equal histories keep the same changes.
func KeepFraction(seed uint64, percent int) Keep {
	random := rand.New(rand.NewPCG(seed, 0))
	return func(string, string) bool { return random.IntN(100) < percent }
}

// CrashClone returns the file system as a power loss at this moment would leave
// it, with keep deciding about everything not durable. The result is fully
// durable and shares nothing that changes with m, which goes on as before.
func (m *FS) CrashClone(keep Keep) *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crash{keep: keep, done: map[*node]*node{}}
	return &FS{root: c.clone(m.root, ""), temp: m.temp}
}

type crash struct {
	keep Keep
	// done holds the outcome of each node: a file between two names has one
	// content.
	done map[*node]*node
}

func (c *crash) clone(n *node, name string) *node {
	if old := c.done[n]; old != nil {
		return old
	}
	var out *node
	if n.dir {
		out = c.cloneDir(n, name)
	} else {
		data := c.survivors(n, name)
		out = &node{data: data, synced: len(data)}
	}
	c.done[n] = out
	return out
}

func (c *crash) cloneDir(n *node, name string) *node {
	out := newDir()
	names := maps.Clone(n.disk)
	maps.Copy(names, n.live)
	for _, base := range slices.Sorted(maps.Keys(names)) {
		full := base
		if name != "" {
			full = name + "/" + base
		}
		live, disk := n.live[base], n.disk[base]
		chosen := disk
		if live != disk && c.keep(kindOf(live, disk), full) {
			chosen = live
		}
		if chosen != nil {
			clone := c.clone(chosen, full)
			out.live[base], out.disk[base] = clone, clone
		}
	}
	return out
}

func kindOf(live, disk *node) string {
	switch {
	case live == nil:
		return KindDelete
	case live.dir:
		return KindDir
	case disk == nil:
		return KindCreate
	}
	return KindReplace
}

// survivors returns the bytes of a file after the crash. What was synced is
// always there; it is shared, its capacity cut so that no append can reach it.
func (c *crash) survivors(n *node, name string) []byte {
	end := n.synced
	data := n.data[:end:end]
	for start := end; start < len(n.data); start = end {
		end = min((start/pageSize+1)*pageSize, len(n.data))
		if !c.keep(KindBytes, name) {
			continue
		}
		if start > len(data) {
			data = append(data, make([]byte, start-len(data))...)
		}
		data = append(data, n.data[start:end]...)
	}
	return data
}
