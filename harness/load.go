package harness

import (
	"fmt"

	"github.com/tideline-db/tideline"
)

// markerStrideMin bounds how often a row of a load is a marker for measuring
// freshness: one row a batch, at most one in this many rows.
const markerStrideMin = 1000

// Load is a source of generated rows.
type Load struct {
	Kind    Kind
	Profile Profile
	Total   int64 // rows, 0: without end
	Batch   int   // rows of a batch
	Buckets int
}

// Check refuses a load that cannot be generated.
func (l Load) Check() error {
	if err := l.Kind.Check(); err != nil {
		return err
	}
	if err := l.Profile.Check(); err != nil {
		return err
	}
	if l.Batch < 1 || l.Buckets < 1 || l.Total < 0 {
		return fmt.Errorf("%d rows in batches of %d to %d buckets: want at least one row a batch and one bucket", l.Total, l.Batch, l.Buckets)
	}
	return nil
}

// Name is the table's name.
func (l Load) Name() string { return "load" }

// Definition is the table to create.
func (l Load) Definition() tideline.Definition { return l.Kind.Definition(l.Buckets) }

// Rows is the number of rows.
func (l Load) Rows() int64 { return l.Total }

// Feed starts at row 0.
func (l Load) Feed() (Feed, error) {
	p := l.Profile
	if l.Kind == AppendTable {
		p.Updates, p.Deletes = 0, 0 // rows are only added
	}
	return &loadFeed{load: l, generator: NewGenerator(p), stride: int64(max(l.Batch, markerStrideMin))}, nil
}

type loadFeed struct {
	load      Load
	generator Generator
	at        int64 // rows handed out, markers included
	stride    int64 // the last row of each stride is a marker
}

func (f *loadFeed) Next() (Job, error) {
	n := int64(f.load.Batch)
	if f.load.Total > 0 {
		n = min(n, f.load.Total-f.at)
	}
	if n <= 0 {
		return nil, nil
	}
	marker := int64(-1)
	if end := f.at + n; end/f.stride > f.at/f.stride {
		marker = end/f.stride - 1
	}
	from, first := f.generator, f.at
	drawn := n
	if marker >= 0 {
		drawn--
	}
	f.generator.Skip(int(drawn))
	f.at += n
	return func() (*Batch, error) { return f.load.batch(from, int(drawn), first, marker), nil }, nil
}

func (f *loadFeed) Close() error { return nil }

// batch makes drawn rows and, unless marker is negative, that marker.
func (l Load) batch(g Generator, drawn int, first, marker int64) *Batch {
	r := newRows(l.Kind, l.Profile, drawn+1)
	defer r.release()
	kinds := make([]tideline.RowKind, drawn, drawn+1)
	for i := range drawn {
		number, kind := g.Next()
		kinds[i] = kind
		r.add(number, uint64(first)+uint64(i))
	}
	b := &Batch{}
	if marker >= 0 {
		r.marker(uint64(marker), uint64(first)+uint64(drawn))
		kinds = append(kinds, tideline.Insert)
		b.Watch = &Watch{Where: l.Kind.whereMarker(uint64(marker)), Row: drawn}
	}
	b.Record = r.record()
	if l.Kind != AppendTable {
		b.Kinds = kinds
	}
	return b
}
