package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline"
)

// shape is one table of the write path.
type shape struct {
	name   string
	schema *arrow.Schema
	key    []string
	draw   func(g *generator, n int) arrow.RecordBatch
}

var shapes = map[string]shape{
	"t1": {"t1", schemaT1, []string{"k"}, func(g *generator, n int) arrow.RecordBatch { t := g.t1(n); return t.record() }},
	"t2": {"t2", schemaT2, []string{"k"}, (*generator).t2},
	"t3": {"t3", schemaT3, []string{"tenant", "id", "ts"}, (*generator).t3},
}

// draw makes the batches of a table.
func (s shape) batches(rows, size int) []arrow.RecordBatch {
	g := newGenerator()
	out := make([]arrow.RecordBatch, 0, rows/size)
	for range rows / size {
		out = append(out, s.draw(g, size))
	}
	return out
}

// drawRows is how many rows are drawn at a time, outside the measured time: what
// a writer is given does not stay alive, so neither does it here.
const drawRows = 20_000

// written opens a fresh table, writes rows in batches of a size, and returns it
// with the time spent in Write.
func written(ctx context.Context, c *config, s shape, rows, size int) (*tideline.Table, *tideline.Writer, time.Duration, error) {
	tables++
	t, err := newTable(ctx, filepath.Join(c.dir, fmt.Sprintf("%s-%d", s.name, tables)), tideline.Definition{Columns: s.schema, PrimaryKey: s.key})
	if err != nil {
		return nil, nil, 0, err
	}
	w, err := t.Writer(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	runtime.GC()
	g, total := newGenerator(), time.Duration(0)
	for at := 0; at+size <= rows; {
		var batches []arrow.RecordBatch
		for n := 0; n < max(drawRows, size) && at+size <= rows; n, at = n+size, at+size {
			batches = append(batches, s.draw(g, size))
		}
		d, err := timed(func() error { return writeAll(ctx, w, batches) })
		if err != nil {
			return nil, nil, 0, err
		}
		total += d
	}
	return t, w, total, nil
}

func writeAll(ctx context.Context, w *tideline.Writer, batches []arrow.RecordBatch) error {
	for _, b := range batches {
		if _, err := w.Write(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

var tables int

// writeOnce is written for a table that is thrown away.
func writeOnce(c *config, s shape, rows, size int) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		ctx := context.Background()
		t, w, d, err := written(ctx, c, s, rows, size)
		if err != nil {
			return 0, err
		}
		if err := w.Discard(ctx); err != nil {
			return 0, err
		}
		return d, t.Close(ctx)
	}
}

// kernelWrite runs K2' over the same rows in the same batches.
func kernelWrite(rows, size int) func() (time.Duration, error) {
	g := newGenerator()
	all := g.t1(rows)
	pairs, tmp := make([]pair, size), make([]pair, size)
	keep := make([]t1Rows, 0, rows/size) // a write keeps what it made
	return func() (time.Duration, error) {
		keep = keep[:0]
		return timed(func() error {
			for at := 0; at+size <= rows; at += size {
				out, _, _ := sortGather(all.slice(at, at+size), int64(at), pairs, tmp)
				keep = append(keep, out)
			}
			return nil
		})
	}
}

// writePath measures Write of batches of 1000 and 10 rows against sort and
// gather of the same batches, and string and composite keys against int64 ones.
func writePath(c *config) ([]Result, error) {
	defer onCores(1)()
	t1 := shapes["t1"]
	var out []Result
	for _, m := range []struct {
		id   string
		size int
		rows int
		goal float64
	}{{"H5", 1000, c.rows, 0.5}, {"H8-batch10", 10, c.rows / 5, 0.3}} {
		ratio, k, s, err := sandwich(c.rounds, kernelWrite(m.rows, m.size), writeOnce(c, t1, m.rows, m.size))
		if err != nil {
			return nil, err
		}
		out = append(out, Result{m.id, 1 / ratio, m.goal, "higher",
			fmt.Sprintf("Write of batches of %d rows over sort and gather of the same batches, one core", m.size),
			fmt.Sprintf("%.1f over %.1f M rows/s", rate(m.rows, s), rate(m.rows, k))})
	}
	for _, m := range []struct {
		id, table, what string
	}{{"H8-string", "t2", "string keys"}, {"H8-composite", "t3", "three-column keys"}} {
		rows := c.rows / 2
		control := writeOnce(c, t1, rows, 1000)
		ratio, k, s, err := sandwich(c.rounds, control, writeOnce(c, shapes[m.table], rows, 1000))
		if err != nil {
			return nil, err
		}
		out = append(out, Result{m.id, 1 / ratio, 0.4, "higher", "Write of batches of 1000 rows with " + m.what + " over int64 keys, one core",
			fmt.Sprintf("%.1f over %.1f M rows/s", rate(rows, s), rate(rows, k))})
	}
	return out, nil
}

// retained measures live heap bytes a row in memory over the transport bytes: the
// Arrow bytes of a row with its sequence number and kind (53 for T1).
func retained(c *config) ([]Result, error) {
	ctx := context.Background()
	t1 := shapes["t1"]
	const transport = 8 + 8 + 8 + 4 + 16 + 8 + 1
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	t, w, _, err := written(ctx, c, t1, c.rows, 1000)
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, t); err != nil {
		return nil, err
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	perRow := float64(after.HeapAlloc-before.HeapAlloc) / float64(c.rows)
	if err := w.Discard(ctx); err != nil {
		return nil, err
	}
	return []Result{{"H13", perRow / transport, 1.15, "lower", "live heap bytes a row in memory over its transport bytes, batches of 1000",
		fmt.Sprintf("%.1f over %d bytes", perRow, transport)}}, t.Close(ctx)
}

// settle waits until consolidation has nothing left to do.
func settle(ctx context.Context, t *tideline.Table) error {
	last, same := -1, 0
	for same < 50 {
		s, err := t.Stats(ctx)
		if err != nil {
			return err
		}
		runs := 0
		for _, b := range s.Buckets {
			runs += b.Runs
		}
		if runs == last {
			same++
		} else {
			last, same = runs, 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// stall measures Write while a commit runs on the other core against Write while
// nothing else runs.
func stall(c *config) ([]Result, error) {
	ctx := context.Background()
	t1 := shapes["t1"]
	more := t1.batches(max(200_000, c.rows/2), 1000)
	var ratios []float64
	var idles, tails []time.Duration
	for range c.rounds {
		t, w, _, err := written(ctx, c, t1, c.rows, 1000)
		if err != nil {
			return nil, err
		}
		if err := settle(ctx, t); err != nil {
			return nil, err
		}
		one := func(b arrow.RecordBatch) (time.Duration, error) {
			return timed(func() error { _, err := w.Write(ctx, b); return err })
		}
		var idle, busy []time.Duration
		for _, b := range more[:len(more)/4] {
			d, err := one(b)
			if err != nil {
				return nil, err
			}
			idle = append(idle, d)
		}
		committed := make(chan error, 1)
		go func() {
			p, err := w.PrepareCommit(ctx, tideline.BetweenWrites())
			if err == nil {
				_, err = t.Commit(ctx, p)
			}
			committed <- err
		}()
		done := false
		for i := len(more) / 4; !done; i = (i + 1) % len(more) {
			select {
			case err := <-committed:
				if err != nil {
					return nil, err
				}
				done = true
			default:
				d, err := one(more[i])
				if err != nil {
					return nil, err
				}
				busy = append(busy, d)
			}
		}
		if len(busy) == 0 {
			continue
		}
		m, p := median(idle), percentile(busy, 0.99)
		idles, tails = append(idles, m), append(tails, p)
		ratios = append(ratios, float64(p)/float64(m))
		if err := w.Discard(ctx); err != nil {
			return nil, err
		}
		if err := t.Close(ctx); err != nil {
			return nil, err
		}
	}
	return []Result{{"H12", medianFloat(ratios), 3, "lower", "99th percentile of Write during a commit over its idle median, batches of 1000, two cores",
		fmt.Sprintf("%s over %s", median(tails), median(idles))}}, nil
}
