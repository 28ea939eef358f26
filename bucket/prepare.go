package bucket

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/merge"
)

// Prepared is a validated batch, split by partition-bucket. It owns its memory:
// the record that it came from may be released or reused at once.
type Prepared struct {
	Rows  int
	Bytes int64   // bytes that appending will retain
	Parts []*Part // one per touched partition-bucket, in order of first appearance

	one *single // what holds it, nil when it was recycled
}

// Preparer turns records into Prepared batches. It is safe for concurrent use.
type Preparer struct {
	t       *Table
	layouts atomic.Pointer[layoutOf]
	scratch sync.Pool
	singles sync.Pool
}

// layoutOf remembers where the columns of one Arrow schema stand: batches of a
// loader share their schema.
type layoutOf struct {
	schema *arrow.Schema
	at     []int
}

// NewPreparer makes a preparer for a table.
func NewPreparer(t *Table) *Preparer {
	p := &Preparer{t: t}
	p.scratch.New = func() any { return newScratch(t) }
	return p
}

// scratch is the memory that one Prepare needs besides its result.
type scratch struct {
	arrays  []arrow.Array // columns of the batch in the order of the schema
	columns []raw
	parts   []arrow.Array // partition columns
	keys    []arrow.Array // bucket-key columns
	buckets []int32
	groupOf []int32
	rank    []int32
	order   []int32
	groups  []group
	encoded []byte
	known   map[string]*Part // partition row to its description
	byID    map[groupKey]int32
}

func newScratch(t *Table) *scratch {
	return &scratch{
		arrays: make([]arrow.Array, len(t.columns)), columns: make([]raw, len(t.columns)),
		parts: make([]arrow.Array, len(t.partition)), keys: make([]arrow.Array, len(t.bucketKey)),
		known: map[string]*Part{}, byID: map[groupKey]int32{},
	}
}

// forget drops what points into the caller's record.
func (s *scratch) forget() {
	clear(s.arrays)
	clear(s.parts)
	clear(s.keys)
	for i := range s.columns {
		s.columns[i] = raw{}
	}
}

// Prepare validates a record as a whole, splits it by partition-bucket, sorts
// every part by primary key and copies it. One bad row refuses the whole batch
// with errs.ErrInvalid, and the message names column and row.
//
// kinds are the row kinds of the rows, nil when all are +I. offsets are strictly
// increasing progress ids handed in by the caller, nil when the engine numbers the
// rows. Neither is kept. A record without rows gives no parts.
func (p *Preparer) Prepare(rec arrow.RecordBatch, kinds []int8, offsets []int64) (*Prepared, error) {
	if rec == nil {
		return nil, errs.Invalid("the record is nil; nothing was written")
	}
	s := p.scratch.Get().(*scratch)
	defer p.scratch.Put(s)
	defer s.forget()
	rows := int(rec.NumRows())
	kinds, err := p.checkNumbers(rows, kinds, offsets)
	if err != nil {
		return nil, err
	}
	if err := p.columns(s, rec, rows); err != nil {
		return nil, err
	}
	if rows == 0 {
		return &Prepared{}, nil
	}
	if err := p.split(s, rows); err != nil {
		return nil, err
	}
	return p.build(s, rows, kinds, offsets), nil
}

// checkNumbers checks row kinds and offsets. It returns nil for kinds that are
// all +I.
func (p *Preparer) checkNumbers(rows int, kinds []int8, offsets []int64) ([]int8, error) {
	if rows > math.MaxInt32-1 {
		return nil, errs.Invalid("a batch of %d rows: at most %d are taken at once; nothing was written", rows, math.MaxInt32-1)
	}
	if kinds != nil {
		if len(kinds) != rows {
			return nil, errs.Invalid("%d row kinds for %d rows; nothing was written", len(kinds), rows)
		}
		plain := true
		for i, k := range kinds {
			plain = plain && k == merge.KindInsert
			switch {
			case k < merge.KindInsert || k > merge.KindDelete:
				return nil, errs.Invalid("row %d: row kind %d is none of 0 (+I), 1 (-U), 2 (+U), 3 (-D); nothing was written", i, k)
			case k != merge.KindInsert && !p.t.primaryKey:
				return nil, errs.Invalid("row %d: row kind %d in a table without primary key, which takes +I only; nothing was written", i, k)
			}
		}
		if plain {
			kinds = nil
		}
	}
	if offsets == nil {
		return kinds, nil
	}
	if len(offsets) != rows {
		return nil, errs.Invalid("%d offsets for %d rows; nothing was written", len(offsets), rows)
	}
	last := int64(-1)
	for i, o := range offsets {
		switch {
		case o < 0:
			return nil, errs.Invalid("row %d: offset %d is negative; nothing was written", i, o)
		case o <= last:
			return nil, errs.Invalid("row %d: offset %d does not exceed the offset %d before it; nothing was written", i, o, last)
		case o == math.MaxInt64:
			return nil, errs.Invalid("row %d: offset %d has no successor; nothing was written", i, o)
		}
		last = o
	}
	return kinds, nil
}

// columns finds, views and checks all columns.
func (p *Preparer) columns(s *scratch, rec arrow.RecordBatch, rows int) error {
	at, err := p.positions(rec.Schema())
	if err != nil {
		return err
	}
	for i, n := range p.t.columns {
		arr := rec.Column(at[i])
		if dt := arr.DataType(); dt != n.dt && !arrow.TypeEqual(dt, n.dt) {
			return wrongType(n, dt)
		}
		if arr.Len() != rows {
			return malformed(n, "%d values in a record of %d rows", arr.Len(), rows)
		}
		if err := s.columns[i].view(n, arr.Data(), 0, rows); err != nil {
			return err
		}
		if err := checkValues(n, &s.columns[i]); err != nil {
			return err
		}
		s.arrays[i] = arr
	}
	for i, c := range p.t.partition {
		s.parts[i] = s.arrays[c]
	}
	for i, c := range p.t.bucketKey {
		s.keys[i] = s.arrays[c]
	}
	return nil
}

func wrongType(n *node, got arrow.DataType) error {
	return errs.Invalid("column %s has the Arrow type %s, the table needs %s; nothing was written", n.name, got, n.dt)
}

// positions matches the columns of a record to those of the table by name. All
// columns are needed and none may be unknown or named twice.
func (p *Preparer) positions(sc *arrow.Schema) ([]int, error) {
	if known := p.layouts.Load(); known != nil && known.schema == sc {
		return known.at, nil
	}
	at := make([]int, len(p.t.columns))
	for i, n := range p.t.columns {
		found := sc.FieldIndices(n.name)
		switch len(found) {
		case 1:
			at[i] = found[0]
		case 0:
			return nil, errs.Invalid("the record has no column %s (%s); every column of the table is needed; nothing was written", n.name, n.dt)
		default:
			return nil, errs.Invalid("the record has %d columns named %s; nothing was written", len(found), n.name)
		}
		if dt := sc.Field(at[i]).Type; !arrow.TypeEqual(dt, n.dt) {
			return nil, wrongType(n, dt)
		}
	}
	if sc.NumFields() > len(at) {
		for _, f := range sc.Fields() {
			if p.t.Schema.FieldIndex(f.Name) < 0 {
				return nil, errs.Invalid("the record has a column %s that the table does not know; nothing was written", f.Name)
			}
		}
	}
	p.layouts.Store(&layoutOf{schema: sc, at: at})
	return at, nil
}

// build copies every group of rows into a part of its own.
func (p *Preparer) build(s *scratch, rows int, kinds []int8, offsets []int64) *Prepared {
	one := p.single()
	out := &one.prepared
	out.Rows, out.Parts = rows, one.parts[:0]
	p.order(s, rows)
	for g := range s.groups {
		group := &s.groups[g]
		part := &one.part
		if len(s.groups) > 1 {
			part = new(Part)
		}
		part.describe(group.partition, group.bucket)
		p.fill(part, s, group, kinds, offsets)
		out.Bytes += part.Bytes
		out.Parts = append(out.Parts, part)
	}
	return out
}

// single is a Prepared with place for one part, what most small batches need.
type single struct {
	prepared Prepared
	part     Part
	parts    [1]*Part
}

// single takes one from the pool, with the packed memory of an earlier batch.
func (p *Preparer) single() *single {
	one, _ := p.singles.Get().(*single)
	if one == nil {
		one = new(single)
	}
	buf := one.part.packed.buf[:0]
	*one = single{}
	one.part.packed.buf = buf
	one.prepared.one = one
	return one
}

// Recycle gives the memory of a batch back to the preparer, once its rows were
// appended: an open chunk has copied them. The batch must not be used again.
// Batches that a bucket retains are left alone.
func (p *Preparer) Recycle(b *Prepared) {
	if one := b.one; one != nil && len(b.Parts) == 1 && one.part.Small && !one.part.OffsetsGiven {
		b.one = nil
		p.singles.Put(one)
	}
}

// order brings the rows of each group into the order in which its part keeps
// them: by key, or as they came. Groups that go to an open chunk stay as they
// came, the chunk sorts when somebody reads it.
func (p *Preparer) order(s *scratch, rows int) {
	sorting := false
	for g := range s.groups {
		s.groups[g].small = p.small(s, s.groups[g].rows(rows), rows)
		sorting = sorting || !s.groups[g].small
	}
	if !sorting || !p.t.primaryKey {
		return
	}
	perm := merge.Sort(p.t.Layout, s.arrays, rows)
	if len(s.groups) == 1 {
		s.groups[0].idx, s.groups[0].perm = perm, perm
	} else if perm != nil {
		s.distribute(perm, rows)
	}
}

// smallRowsMax is the size up to which a batch joins an open chunk instead of
// becoming a run of its own: below it, the objects around a run cost more than
// its rows.
const (
	smallRowsMax  = 63
	smallBytesMax = 64 << 10 // and this size in bytes: big rows gain nothing
)

func (p *Preparer) small(s *scratch, rows, of int) bool {
	if !p.t.flat || rows > smallRowsMax {
		return false
	}
	// The texts of a group are estimated by its share of the batch.
	bytes := 0
	for i := range s.columns {
		if r := &s.columns[i]; r.offsets != nil {
			bytes += int(r.offsets[len(r.offsets)-1] - r.offsets[0])
		}
	}
	return bytes/of*rows <= smallBytesMax
}

// fill copies the rows of a group.
func (p *Preparer) fill(part *Part, s *scratch, g *group, kinds []int8, offsets []int64) {
	sel := selection{idx: g.idx, lo: 0, hi: s.columns[0].rows}
	part.Rows, part.Small, part.source = sel.rows(), g.small, p.t
	if offsets != nil {
		part.OffsetsGiven = true
		part.Offsets = pickOffsets(offsets, g)
		part.FirstOffset, part.LastOffset = part.Offsets[0], part.Offsets[len(part.Offsets)-1]
	}
	if g.small {
		part.pack(p.t, s.columns, sel, kinds)
		return
	}
	b := &merge.Block{Columns: make([]arrow.Array, len(p.t.columns)), Rows: part.Rows}
	for i, n := range p.t.columns {
		b.Columns[i] = gatherArray(n, &s.columns[i], sel, &part.Bytes)
	}
	b.Kinds = pickKinds(kinds, sel)
	b.Seq.Perm = permutation(g)
	part.Bytes += int64(len(b.Kinds) + 4*len(b.Seq.Perm))
	part.Block = b
}

func pickKinds(kinds []int8, sel selection) []int8 {
	if kinds == nil {
		return nil
	}
	var picked []int8
	if sel.idx == nil {
		picked = append(picked, kinds[sel.lo:sel.hi]...)
	} else {
		picked = take(kinds, sel.idx)
	}
	for _, k := range picked {
		if k != merge.KindInsert {
			return picked
		}
	}
	return nil
}

// pickOffsets gives the offsets of a group in the order in which its rows came.
func pickOffsets(offsets []int64, g *group) []int64 {
	if g.count == 0 {
		return append([]int64(nil), offsets...)
	}
	picked := make([]int64, g.count)
	for i, j := range g.idx {
		if len(g.perm) > 0 {
			picked[g.perm[i]] = offsets[j]
		} else {
			picked[i] = offsets[j]
		}
	}
	return picked
}

// permutation owns its memory: with one group merge.Sort made it, else it is
// copied from scratch memory. nil stands for the order in which the rows came.
func permutation(g *group) []int32 {
	if g.perm == nil || g.count == 0 {
		return g.perm
	}
	for i, v := range g.perm {
		if int(v) != i {
			return append([]int32(nil), g.perm...)
		}
	}
	return nil
}
