package manifest

import (
	"encoding/binary"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
)

// Write encodes a manifest: the schema of FORMAT §4.1 with all 20 file fields,
// zstd level 1, the given sync marker. The same input gives the same bytes. A nil
// row stands for the empty row of arity 0. errs.ErrInvalid for rows that do not have
// their arity and for entries that no reader would accept.
func Write(entries []Entry, sync [16]byte) ([]byte, error) {
	return writeManifest(entries, sync, codecZstd)
}

// WriteList encodes a manifest list, as Write does; no entries give the valid
// empty list that a first snapshot has as its base.
func WriteList(list []ListEntry, sync [16]byte) ([]byte, error) {
	return writeList(list, sync, codecZstd)
}

func writeManifest(entries []Entry, sync [16]byte, codec string) ([]byte, error) {
	w := encoder{buf: make([]byte, 0, 400*len(entries))}
	ends := make([]int, len(entries))
	for i := range entries {
		w.entry(&entries[i])
		if w.err != nil {
			return nil, w.err
		}
		ends[i] = len(w.buf)
	}
	return buildContainer(manifestSchema, codec, sync, w.buf, ends)
}

func writeList(list []ListEntry, sync [16]byte, codec string) ([]byte, error) {
	w := encoder{buf: make([]byte, 0, 150*len(list))}
	ends := make([]int, len(list))
	for i := range list {
		w.listEntry(&list[i])
		if w.err != nil {
			return nil, w.err
		}
		ends[i] = len(w.buf)
	}
	return buildContainer(listSchema, codec, sync, w.buf, ends)
}

// encoder appends Avro values of the two schemas; the first error sticks.
type encoder struct {
	buf []byte
	err error
}

func (w *encoder) refuse(format string, args ...any) {
	if w.err == nil {
		w.err = errs.Invalid(format, args...)
	}
}

func (w *encoder) long(v int64)   { w.buf = binary.AppendVarint(w.buf, v) }
func (w *encoder) text(s string)  { w.buf = appendText(w.buf, s) }
func (w *encoder) bytes(b []byte) { w.buf = appendText(w.buf, b) }

func (w *encoder) int(v int) {
	if v != int(int32(v)) {
		w.refuse("write manifest: %d is no 32-bit number", v)
	}
	w.long(int64(v))
}

func (w *encoder) row(b []byte, arity int, what string) {
	if b == nil && arity == 0 {
		b = row.EmptyRow
	}
	if arity < 0 || len(b) < row.FixedSize(arity) {
		w.refuse("write manifest: %s of %d bytes for %d fields", what, len(b), arity)
		return
	}
	w.long(int64(4 + len(b)))
	w.buf = row.AppendSerialized(w.buf, b, arity)
}

func (w *encoder) stats(s *Stats) {
	w.row(s.Min, s.Arity, "minima")
	w.row(s.Max, s.Arity, "maxima")
	w.long(1) // the array branch
	if len(s.NullCounts) > 0 {
		w.long(int64(len(s.NullCounts)))
		for _, n := range s.NullCounts {
			if n < 0 {
				w.long(0)
				continue
			}
			w.long(1)
			w.long(n)
		}
	}
	w.long(0)
}

func (w *encoder) texts(list []string) {
	if len(list) > 0 {
		w.long(int64(len(list)))
		for _, s := range list {
			w.text(s)
		}
	}
	w.long(0)
}

// some writes the union branch: 1 and true when there is a value.
func (w *encoder) some(present bool) bool {
	if present {
		w.long(1)
	} else {
		w.long(0)
	}
	return present
}

func (w *encoder) optInt(p *int) {
	if w.some(p != nil) {
		w.int(*p)
	}
}

func (w *encoder) optLong(p *int64) {
	if w.some(p != nil) {
		w.long(*p)
	}
}

func (w *encoder) name(s string) {
	if err := checkName(s); err != nil {
		w.refuse("write manifest: %s", reason(err))
	}
	w.text(s)
}

func (w *encoder) entry(e *Entry) {
	if e.Kind != Add && e.Kind != Delete {
		w.refuse("write manifest: entry of kind %d", e.Kind)
	}
	w.long(2)
	w.int(e.Kind)
	w.row(e.Partition, e.PartArity, "partition")
	w.int(e.Bucket)
	w.int(e.TotalBuckets)
	w.file(&e.File)
}

func (w *encoder) file(m *FileMeta) {
	w.name(m.Name)
	w.long(m.Size)
	w.long(m.Rows)
	w.row(m.MinKey, m.KeyArity, "minimum key")
	w.row(m.MaxKey, m.KeyArity, "maximum key")
	w.stats(&m.KeyStats)
	w.stats(&m.ValueStats)
	w.long(m.MinSeq)
	w.long(m.MaxSeq)
	w.long(m.SchemaID)
	w.int(m.Level)
	w.texts(m.ExtraFiles)
	w.optLong(m.CreationTime)
	w.optLong(m.DeleteRows)
	if w.some(m.EmbeddedIndex != nil) {
		w.bytes(m.EmbeddedIndex)
	}
	w.optInt(m.Source)
	if w.some(m.HasStatsCols) {
		w.texts(m.ValueStatsCols)
	}
	if w.some(m.ExternalPath != nil) {
		w.text(*m.ExternalPath)
	}
	w.optLong(m.FirstRowID)
	if w.some(m.HasWriteCols) {
		w.texts(m.WriteCols)
	}
	if m.HasWriteColsSequences && w.err == nil {
		// The written schema has no place for them, and to drop them would
		// change what the file means.
		w.err = errs.Unsupported("write manifest: file %q has _WRITE_COLS_SEQUENCES", m.Name)
	}
}

func (w *encoder) listEntry(e *ListEntry) {
	w.long(2)
	w.name(e.Name)
	w.long(e.Size)
	w.long(e.Added)
	w.long(e.Deleted)
	w.stats(&e.PartitionStats)
	w.long(e.SchemaID)
	w.optInt(e.MinBucket)
	w.optInt(e.MaxBucket)
	w.optInt(e.MinLevel)
	w.optInt(e.MaxLevel)
	w.optLong(e.MinRowID)
	w.optLong(e.MaxRowID)
}
