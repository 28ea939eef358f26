package datafile

import (
	"errors"
	"fmt"
	"io"
)

// openGroup opens a decoder for each leaf of the next row group with rows.
func (b *Batches) openGroup() error {
	for {
		if len(b.groups) == 0 {
			return io.EOF
		}
		if b.r.meta.RowGroups[b.groups[0]].NumRows > 0 {
			break
		}
		b.groups = b.groups[1:]
	}
	g := b.groups[0]
	b.left = b.r.meta.RowGroups[g].NumRows
	b.blocks = map[int]*leafBlock{}
	width := int64(0)
	for _, c := range b.columns {
		for _, leaf := range c.leafColumns(nil) {
			if _, shared := b.blocks[leaf.leaf]; shared {
				return fmt.Errorf("column %s is wanted twice", leaf.name)
			}
			cur, err := b.openLeaf(g, leaf)
			if err != nil {
				return err
			}
			b.leaves = append(b.leaves, cur)
			b.blocks[leaf.leaf] = cur.block
			width += b.r.meta.RowGroups[g].Columns[leaf.leaf].MetaData.TotalUncompressedSize
		}
	}
	b.batch = b.rows
	if perRow := width / b.left; perRow > 0 {
		b.batch = int(max(1, min(int64(b.rows), maxBatchBytes/perRow)))
	}
	return nil
}

func (b *Batches) openLeaf(group int, leaf *column) (*leafCursor, error) {
	info, err := chunkOf(b.r.meta, group, leaf.leaf)
	if err != nil {
		return nil, err
	}
	dec, err := openChunk(sourceOf{b.r}, info, &b.r.pool)
	if err != nil {
		return nil, err
	}
	return &leafCursor{c: leaf, dec: dec, block: newLeafBlock(b.r.mem, leaf.width), repeats: info.descr.MaxRepetitionLevel() > 0}, nil
}

// closeGroup drops the decoders of the open row group.
func (b *Batches) closeGroup() {
	for _, l := range b.leaves {
		l.dec.close()
		l.block.release()
		if l.rest != nil {
			l.rest.release()
		}
	}
	b.leaves, b.blocks = nil, nil
	if len(b.groups) > 0 {
		b.groups = b.groups[1:]
	}
}

// fail makes the first error final. The end of the rows is not damage.
func (b *Batches) fail(err error) {
	switch {
	case errors.Is(err, io.EOF):
		b.failure = io.EOF
	default:
		var ioErr *sourceError
		if errors.As(err, &ioErr) {
			b.failure = fmt.Errorf("read data file %s: %w", b.r.f.Name(), ioErr.err)
		} else {
			b.failure = b.r.damage(err)
		}
	}
	b.closeGroup()
	b.groups, b.left = nil, 0
}

// sourceError marks failures of the store, which are no damage of the file.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// sourceOf reads the file and marks its failures.
type sourceOf struct{ r *Reader }

func (s sourceOf) ReadAt(p []byte, at int64) (int, error) {
	n, err := s.r.f.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = &sourceError{err: err}
	}
	return n, err
}

// leafCursor feeds a leaf's block with the entries of a given number of rows. A
// leaf without repetition has one entry a row. A repeated leaf learns where a
// row ends from the start of the next one, so entries decoded beyond the batch
// wait in rest.
type leafCursor struct {
	c       *column
	dec     chunkDecoder
	block   *leafBlock
	rest    *leafBlock
	repeats bool
	ended   bool
	usedMax int // largest data size so far, to size the next block at once
}

func (l *leafCursor) fill(n int) error {
	if l.repeats {
		return l.fillRows(n)
	}
	l.reserve(n)
	for l.block.entries < n {
		got, err := l.dec.decode(n-l.block.entries, l.block)
		if err != nil {
			return err
		}
		if got == 0 {
			return fmt.Errorf("it ends after %d of %d values", l.block.entries, n)
		}
	}
	return nil
}

// reserve sizes text buffers by the last batch.
func (l *leafCursor) reserve(n int) {
	if l.c.width == 0 {
		l.block.growOffsets(n)
		if l.usedMax > 0 {
			l.block.growData(l.usedMax + l.usedMax/16)
		}
	} else {
		l.block.grow(n)
	}
}

const (
	repeatedStep = 4096
	// maxRepeatedEntries bounds a repeated leaf in one batch: a few bytes of
	// run-length levels can claim any number of elements.
	maxRepeatedEntries = 1 << 25
)

// fillRows decodes until n whole rows are in the block, and moves what lies
// behind them to rest.
func (l *leafCursor) fillRows(n int) error {
	if l.rest != nil {
		*l.block, *l.rest = *l.rest, *l.block // the block's address is known to the batch
		l.rest.reset()
	} else {
		l.rest = newLeafBlock(l.block.mem, l.block.width)
	}
	rows, at := 0, 0
	for {
		for ; at < l.block.entries; at++ {
			if l.block.rep[at] != 0 {
				if at == 0 {
					return errors.New("it starts in the middle of a row")
				}
				continue
			}
			if rows == n {
				return l.block.split(at, l.rest, l.c)
			}
			rows++
		}
		if l.ended {
			break
		}
		got, err := l.dec.decode(repeatedStep, l.block)
		if err != nil {
			return err
		}
		l.ended = got == 0
		if l.block.entries > maxRepeatedEntries {
			return errBlockFull
		}
	}
	if rows != n {
		return fmt.Errorf("it ends after %d of %d rows", rows, n)
	}
	return nil
}

// consume empties the block after its arrays were built.
func (l *leafCursor) consume() {
	l.usedMax = max(l.usedMax, l.block.used)
	if !l.repeats {
		l.block.reset()
	}
}

func (b *leafBlock) reset() {
	b.def, b.rep = b.def[:0], b.rep[:0]
	b.entries, b.present, b.used = 0, 0, 0
}

// split moves the entries from at on into the empty block rest.
func (b *leafBlock) split(at int, rest *leafBlock, c *column) error {
	maxDef := c.def
	keep := 0
	for _, d := range b.def[:at] {
		if d == maxDef {
			keep++
		}
	}
	moved := b.present - keep
	if moved < 0 {
		return errors.New("it has fewer values than levels")
	}
	rest.def = append(rest.def, b.def[at:]...)
	rest.rep = append(rest.rep, b.rep[at:]...)
	rest.entries = b.entries - at
	if b.width > 0 {
		copy(rest.grow(moved), b.data.Bytes()[keep*b.width:b.present*b.width])
	} else if b.present > 0 {
		ends := asInt32s(b.offsets.Bytes())
		from := ends[keep]
		copy(rest.growData(b.used-int(from)), b.data.Bytes()[from:b.used])
		out := rest.growOffsets(moved)
		for i := range moved {
			out[i+1] = ends[keep+1+i] - from
		}
		rest.used, b.used = b.used-int(from), int(from)
	}
	rest.present, b.present = moved, keep
	b.def, b.rep, b.entries = b.def[:at], b.rep[:at], at
	return nil
}
