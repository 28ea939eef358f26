package bucket

import (
	"bytes"
	"math"
	"sort"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/merge"
)

// chunk collects the rows of small batches in columns that grow. Readers see the
// rows through prefixes: what a prefix covers is never written again, rows behind
// it may be written while it is read, and when a column is full the rows move to
// a larger one while older prefixes keep the old.
//
//	rows      |0 1 2 3|4|5 6|        |
//	marks           ^4  ^5  ^7             one a batch: end row and epoch
//	prefix    |<------->|                  rows=5, marks=2
//
// Only the owner of the bucket appends.
type chunk struct {
	t      *Table
	sorted *atomic.Pointer[sortedPrefix]
	prefix
	used int64 // bytes of the parts
}

// prefix is an immutable picture of the first rows of a chunk.
type prefix struct {
	buffers *chunkBuffers
	rows    int
	epoch   int64  // the first mark's epoch
	marks   []mark // ascending in both fields
	jumps   []jump // where sequence numbers are not the successor of those before
}

// mark is the end of one batch inside a chunk.
type mark struct {
	end   uint32 // rows up to and with this batch
	after uint32 // its epoch, counted from the chunk's first
}

// jump says that the row at start has the sequence number seq, and the rows
// behind it the following ones.
type jump struct {
	start int
	seq   int64
}

// chunkBuffers is replaced as a whole when a column grows.
type chunkBuffers struct {
	columns []chunkColumn
	kinds   []int8 // nil while every row is +I
}

type chunkColumn struct {
	values  []byte  // fixed width: values; booleans: a byte each
	offsets []int32 // text: positions, the first is 0
	text    []byte
	valid   []byte // a byte each, nil while nothing is null
}

const (
	chunkRows     = 4096    // rows of a full chunk
	chunkStart    = 8       // rows that a new one has place for: most buckets are quiet
	chunkTextSize = 4 << 20 // bytes after which it is full as well
	chunkBusy     = 4096    // rows that it has place for at once behind a full one,
	chunkBusySize = 1 << 20 // if these are not more bytes
)

// newChunk makes place for some rows at first; more is made when it is needed.
// Behind a full chunk it expects texts like those.
func newChunk(t *Table, epoch int64, rows int, full *chunk) *chunk {
	c := &chunk{t: t, sorted: new(atomic.Pointer[sortedPrefix])}
	c.epoch = epoch
	c.buffers = &chunkBuffers{columns: make([]chunkColumn, len(t.columns))}
	for i, n := range t.columns {
		col := &c.buffers.columns[i]
		if n.shape == shapeText {
			col.offsets = make([]int32, rows+1)
			size := 8 * rows
			if full != nil {
				used := int(full.buffers.columns[i].offsets[full.rows])
				size = min(max(size, used+used/8), max(size, chunkBusySize))
			}
			col.text = make([]byte, size)
		} else {
			col.values = alignedBytes(rows * n.cellBytes())
		}
	}
	return c
}

// takes tells whether a part fits: rows, bytes, and its epoch as a difference.
func (c *chunk) takes(p *Part, epoch int64) bool {
	return c.rows+p.Rows <= chunkRows && c.used+p.Bytes <= chunkTextSize && epoch-c.epoch <= math.MaxUint32
}

// append adds the rows of a small part.
func (c *chunk) append(p *Part, epoch, seq int64) {
	pk := &p.packed
	end := c.rows + pk.rows
	c.appendKinds(pk.rowKinds(), end)
	buf := pk.columnsAt()
	for i, n := range c.t.columns {
		var col packedColumn
		col, buf = pk.next(n, buf)
		c.appendValid(i, col.valid, end)
		if n.shape == shapeText {
			c.appendText(i, col, pk.rows)
		} else {
			c.appendValues(i, n.cellBytes(), col.values, end)
		}
	}
	if k := len(c.jumps); k == 0 || c.jumps[k-1].seq+int64(c.rows-c.jumps[k-1].start) != seq {
		c.jumps = append(c.jumps, jump{c.rows, seq})
	}
	c.rows = end
	c.used += p.Bytes
	c.marks = append(c.marks, mark{uint32(end), uint32(epoch - c.epoch)})
}

// change gives the buffers a new identity before one of them is replaced, so
// that prefixes keep what they have.
func (c *chunk) change() *chunkBuffers {
	b := *c.buffers
	b.columns = append([]chunkColumn(nil), b.columns...)
	c.buffers = &b
	return c.buffers
}

// grown is the number of rows to make place for.
func grown(rows int) int {
	size := chunkStart
	for size < rows {
		size *= 2
	}
	return min(size, chunkRows)
}

func (c *chunk) appendValues(i, width int, values []byte, end int) {
	dst := c.buffers.columns[i].values
	if end*width > len(dst) {
		bigger := alignedBytes(grown(end) * width)
		copy(bigger, dst[:c.rows*width])
		c.change().columns[i].values = bigger
		dst = bigger
	}
	copy(dst[c.rows*width:], values)
}

func (c *chunk) appendText(i int, col packedColumn, rows int) {
	have := &c.buffers.columns[i]
	offsets, text := have.offsets, have.text
	used := int(offsets[c.rows])
	if c.rows+rows+1 > len(offsets) || used+len(col.text) > len(text) {
		if c.rows+rows+1 > len(offsets) {
			offsets = make([]int32, grown(c.rows+rows)+1)
			copy(offsets, have.offsets[:c.rows+1])
		}
		if used+len(col.text) > len(text) {
			text = make([]byte, max(2*len(text), used+len(col.text)))
			copy(text, have.text[:used])
		}
		have = &c.change().columns[i]
		have.offsets, have.text = offsets, text
	}
	copy(text[used:], col.text)
	for k := range rows {
		used += col.textLen(k)
		offsets[c.rows+k+1] = int32(used)
	}
}

func (c *chunk) appendValid(i int, valid []byte, end int) {
	dst := c.buffers.columns[i].valid
	if dst == nil && valid == nil {
		return
	}
	if end > len(dst) {
		bigger := make([]byte, grown(end))
		copied := copy(bigger, dst)
		for k := copied; k < c.rows; k++ {
			bigger[k] = 1
		}
		c.change().columns[i].valid = bigger
		dst = bigger
	}
	if valid != nil {
		copy(dst[c.rows:], valid)
		return
	}
	for k := c.rows; k < end; k++ {
		dst[k] = 1
	}
}

func (c *chunk) appendKinds(kinds []byte, end int) {
	dst := c.buffers.kinds
	if dst == nil && kinds == nil {
		return
	}
	if end > len(dst) {
		bigger := make([]int8, grown(end))
		copy(bigger, dst[:min(c.rows, len(dst))])
		c.change().kinds = bigger
		dst = bigger
	}
	for k := c.rows; k < end; k++ {
		dst[k] = merge.KindInsert
		if kinds != nil {
			dst[k] = int8(kinds[k-c.rows])
		}
	}
}

// last is the highest epoch of the rows.
func (p *prefix) last() int64 { return p.epoch + int64(p.marks[len(p.marks)-1].after) }

// upTo is the prefix of the rows of epochs up to a frontier; without rows its
// count is 0.
func (p *prefix) upTo(frontier int64) prefix {
	k := sort.Search(len(p.marks), func(i int) bool { return p.epoch+int64(p.marks[i].after) > frontier })
	out := *p
	out.marks = p.marks[:k]
	out.rows = 0
	if k > 0 {
		out.rows = int(p.marks[k-1].end)
	}
	return out
}

// bytes is what the rows of the prefix take.
func (p *prefix) bytes(t *Table) int64 {
	n := markBytes*len(p.marks) + t.rowBytes*p.rows
	if p.buffers.kinds != nil {
		n += p.rows
	}
	for i := range p.buffers.columns {
		c := &p.buffers.columns[i]
		if c.valid != nil {
			n += p.rows
		}
		if c.offsets != nil {
			n += int(c.offsets[p.rows])
		}
	}
	return int64(n)
}

// sortedPrefix is the block of the first rows of a chunk, kept for the next
// reader.
type sortedPrefix struct {
	rows  int
	block *merge.Block
}

// block puts the rows into a block: in key order, or as they came. Fixed-width
// columns of an append table are not copied.
func (p *prefix) block(t *Table) *merge.Block {
	columns := make([]arrow.Array, len(t.columns))
	raws := make([]raw, len(t.columns))
	for i, n := range t.columns {
		raws[i] = p.raw(n, &p.buffers.columns[i])
		columns[i] = raws[i].array(n)
	}
	var kinds []int8
	if p.buffers.kinds != nil {
		kinds = p.buffers.kinds[:p.rows:p.rows]
	}
	b := &merge.Block{Columns: columns, Rows: p.rows, Kinds: pickKinds(kinds, selection{lo: 0, hi: len(kinds)})}
	var perm []int32
	if t.primaryKey {
		perm = merge.Sort(t.Layout, columns, p.rows)
	}
	if perm != nil {
		var retained int64
		s := selection{idx: perm}
		for i, n := range t.columns {
			b.Columns[i] = gatherArray(n, &raws[i], s, &retained)
		}
		b.Kinds = pickKinds(b.Kinds, s)
	}
	b.Seq = p.numbers(perm)
	return b
}

// numbers are the sequence numbers of the rows in the order of perm.
func (p *prefix) numbers(perm []int32) merge.Numbers {
	base := p.jumps[0].seq
	if len(p.jumps) == 1 || p.jumps[1].start >= p.rows {
		return merge.Numbers{Base: base, Perm: perm}
	}
	came := make([]int64, p.rows)
	for k, j := range p.jumps {
		end := p.rows
		if k+1 < len(p.jumps) {
			end = min(end, p.jumps[k+1].start)
		}
		for i := j.start; i < end; i++ {
			came[i] = j.seq + int64(i-j.start)
		}
	}
	if perm != nil {
		came = take(came, perm)
	}
	return compact(came)
}

// compact stores numbers as a base and 32-bit differences where these reach.
func compact(numbers []int64) merge.Numbers {
	if len(numbers) == 0 {
		return merge.Numbers{}
	}
	low, high := numbers[0], numbers[0]
	for _, v := range numbers {
		low, high = min(low, v), max(high, v)
	}
	if high-low > math.MaxInt32 {
		return merge.Numbers{Explicit: numbers}
	}
	perm := make([]int32, len(numbers))
	for i, v := range numbers {
		perm[i] = int32(v - low)
	}
	return merge.Numbers{Base: low, Perm: perm}
}

// raw views the rows of one chunk column.
func (p *prefix) raw(n *node, c *chunkColumn) raw {
	r := raw{rows: p.rows}
	if c.valid != nil {
		r.nulls = p.rows - bytes.Count(c.valid[:p.rows], []byte{1})
		if r.nulls > 0 {
			r.valid = bitsOf(c.valid[:p.rows])
		}
	}
	switch n.shape {
	case shapeFixed:
		r.fixed = c.values[: p.rows*n.width : p.rows*n.width]
	case shapeBool:
		r.bits = bitsOf(c.values[:p.rows])
	case shapeText:
		r.offsets = c.offsets[: p.rows+1 : p.rows+1]
		end := r.offsets[p.rows]
		r.data = c.text[:end:end]
	}
	return r
}

// array makes an array of the memory that a flat raw column views.
func (r *raw) array(n *node) arrow.Array {
	buffers := make([]*memory.Buffer, 2, 3)
	if r.valid != nil {
		buffers[0] = memory.NewBufferBytes(r.valid)
	}
	switch n.shape {
	case shapeFixed:
		buffers[1] = memory.NewBufferBytes(r.fixed)
	case shapeBool:
		buffers[1] = memory.NewBufferBytes(r.bits)
	case shapeText:
		buffers[1] = memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(r.offsets))
		buffers = append(buffers, memory.NewBufferBytes(r.data))
	}
	return array.MakeFromData(array.NewData(n.dt, r.rows, buffers, nil, r.nulls, 0))
}
