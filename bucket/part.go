package bucket

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/row"
)

// Part is the rows of one prepared batch that go to one partition-bucket. It is
// immutable once prepared and can be appended once.
type Part struct {
	ID              ID
	PartitionValues []row.Value // in order of the partition keys
	PartitionKVs    []path.KV   // key and directory text of each value, not escaped
	PartitionRow    []byte      // encoded row of the values, without field count

	Rows  int
	Bytes int64 // bytes that appending retains

	// Block holds the rows in key order (primary key) or as they came (append);
	// Seq.Perm tells how they came, Seq.Base is set when the part is appended. It
	// is nil for a small part, whose rows are packed for the open chunk.
	Block *merge.Block
	Small bool

	// With offsets of the caller: the offsets in the order in which the rows came.
	OffsetsGiven            bool
	FirstOffset, LastOffset int64
	Offsets                 []int64

	packed packed
	source *Table
}

// describe copies what tells the partition.
func (p *Part) describe(of *Part, bucket int32) {
	p.ID = ID{Partition: of.ID.Partition, Bucket: bucket}
	p.PartitionValues, p.PartitionKVs, p.PartitionRow = of.PartitionValues, of.PartitionKVs, of.PartitionRow
}

// Identity is the part without its rows: it tells which partition-bucket it was.
func (p *Part) Identity() *Part {
	out := new(Part)
	out.describe(p, p.ID.Bucket)
	return out
}

// After gives the part without the rows whose offsets are below an offset, and
// how many these are. Without a remaining row the part is nil. It is only for
// offsets of the caller; others are never below.
func (p *Part) After(offset int64) (*Part, int) {
	cut := sort.Search(len(p.Offsets), func(i int) bool { return p.Offsets[i] >= offset })
	switch cut {
	case 0:
		return p, 0
	case p.Rows:
		return nil, cut
	}
	rest := p.Identity()
	rest.Rows, rest.Small, rest.source = p.Rows-cut, p.Small, p.source
	rest.OffsetsGiven, rest.Offsets = true, p.Offsets[cut:]
	rest.FirstOffset, rest.LastOffset = rest.Offsets[0], p.LastOffset
	if p.Small {
		rest.packed = p.packed.after(p.source, cut)
		rest.Bytes = rest.packed.retained(p.source)
		return rest, cut
	}
	rest.cutBlock(p, cut)
	return rest, cut
}

// cutBlock copies the rows that came at position cut or later.
func (p *Part) cutBlock(of *Part, cut int) {
	b := of.Block
	sel := selection{lo: cut, hi: of.Rows}
	var perm []int32
	if b.Seq.Perm != nil {
		for i, came := range b.Seq.Perm {
			if int(came) >= cut {
				sel.idx = append(sel.idx, int32(i))
				perm = append(perm, came-int32(cut))
			}
		}
	}
	out := &merge.Block{Rows: p.Rows, Columns: make([]arrow.Array, len(b.Columns)), Kinds: pickKinds(b.Kinds, sel)}
	out.Seq.Perm = perm
	for i, n := range of.source.columns {
		r := own(n, b.Columns[i])
		out.Columns[i] = gatherArray(n, &r, sel, &p.Bytes)
	}
	p.Bytes += int64(len(out.Kinds) + 4*len(perm))
	p.Block, p.source = out, of.source
}

// own views an array of this package, whose buffers are known to be sound.
func own(n *node, a arrow.Array) (r raw) {
	if err := r.view(n, a.Data(), 0, a.Len()); err != nil {
		panic(err) // gather made an array that it refuses itself
	}
	return r
}
