package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/schema"
)

// count reads a scan to its end.
func count(ctx context.Context, s tideline.Scan) (rows int, err error) {
	r, err := s.Read(ctx)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		rows += int(r.RecordBatch().NumRows())
	}
	return rows, r.Err()
}

// memoryRead merges the rows of 1000 unconsolidated runs in memory to batches of
// all columns, against partition, radix sort and gather of the same rows.
func memoryRead(c *config) ([]Result, error) {
	defer onCores(1)()
	size := max(1, c.rows/1000)
	g := newGenerator()
	var runs []t1Rows
	var blocks []*merge.Block
	table, err := bucketTable()
	if err != nil {
		return nil, err
	}
	p := bucket.NewPreparer(table)
	pairs, tmp := make([]pair, size), make([]pair, size)
	at := 0
	for range 1000 {
		rows := g.t1(size)
		sorted, _, _ := sortGather(rows, 0, pairs, tmp)
		runs = append(runs, sorted)
		prepared, err := p.Prepare(rows.record(), nil, nil)
		if err != nil {
			return nil, err
		}
		part := prepared.Parts[0]
		if part.Block == nil {
			return nil, errors.New("batches are too small for blocks; use more rows")
		}
		b := *part.Block
		b.Seq.Base = int64(at)
		at += size
		blocks = append(blocks, &b)
	}
	control := func() (time.Duration, error) {
		return timed(func() error { mergeGather(runs); return nil })
	}
	subject := func() (time.Duration, error) {
		return timed(func() error {
			sources := make([]merge.Source, len(blocks))
			for i, b := range blocks {
				sources[i] = merge.NewBlockSource(b)
			}
			u := merge.NewUnion(table.Layout, sources, merge.Options{})
			defer u.Close()
			for {
				if _, err := u.Next(context.Background()); err != nil {
					if errors.Is(err, io.EOF) {
						return nil
					}
					return err
				}
			}
		})
	}
	ratio, k, s, err := sandwich(c.rounds, control, subject)
	if err != nil {
		return nil, err
	}
	return []Result{{"H2", 1 / ratio, 0.5, "higher", "merged read of 1000 runs in memory, all columns, over partition, radix sort and gather, one core",
		fmt.Sprintf("%.1f over %.1f M rows/s", rate(c.rows, s), rate(c.rows, k))}}, nil
}

func bucketTable() (*bucket.Table, error) {
	fields, err := schema.FromArrow(schemaT1)
	if err != nil {
		return nil, err
	}
	s, err := schema.New(fields, nil, []string{"k"}, map[string]string{"bucket": "1"}, 0)
	if err != nil {
		return nil, err
	}
	o, err := schema.ParseOptions(s)
	if err != nil {
		return nil, err
	}
	return bucket.NewTable(s, o)
}

// fanIn is the exponent with which the time of a memory read grows from 8 to 4096
// batches of the same rows, after consolidation.
func fanIn(c *config) ([]Result, error) {
	defer onCores(1)()
	ctx := context.Background()
	t1 := shapes["t1"]
	read := func(batches int) (func() (time.Duration, error), func() error, error) {
		t, w, _, err := written(ctx, c, t1, c.rows, max(1, c.rows/batches))
		if err != nil {
			return nil, nil, err
		}
		if err := settle(ctx, t); err != nil {
			return nil, nil, err
		}
		closing := func() error {
			if err := w.Discard(ctx); err != nil {
				return err
			}
			return t.Close(ctx)
		}
		return func() (time.Duration, error) {
			return timed(func() error { _, err := count(ctx, t.Scan()); return err })
		}, closing, nil
	}
	few, closeFew, err := read(8)
	if err != nil {
		return nil, err
	}
	many, closeMany, err := read(4096)
	if err != nil {
		return nil, err
	}
	ratio, f, m, err := sandwich(c.rounds, few, many)
	if err != nil {
		return nil, err
	}
	exponent := math.Log(ratio) / math.Log(4096.0/8)
	return []Result{{"H4", exponent, 0.12, "lower", "exponent of read time in the number of batches, 8 to 4096, consolidated, one core",
		fmt.Sprintf("%.1f and %.1f M rows/s", rate(c.rows, f), rate(c.rows, m))}}, errors.Join(closeFew(), closeMany())
}

// unionRead reads 90 % of the rows from files and 10 % from memory, a tenth of
// which overwrite committed keys, against a plain scan of the same data file.
func unionRead(c *config) ([]Result, error) {
	defer onCores(1)()
	ctx := context.Background()
	t1 := shapes["t1"]
	disk, fresh := c.rows*9/10, c.rows/10
	keyed := func(from, n int) arrow.RecordBatch { // distinct keys [from, from+n)
		t := newT1Rows(n)
		for i := range n {
			d := uint64(from + i)
			t.k[i] = t1Key(d)
			t.draw(i, d)
		}
		return t.record()
	}
	var committed, memory []arrow.RecordBatch
	for at := 0; at+1000 <= disk; at += 1000 {
		committed = append(committed, keyed(at, 1000))
	}
	for at := 0; at+1000 <= fresh; at += 1000 { // a tenth of the batches repeats committed keys
		from := disk + at
		if at/1000%10 == 0 {
			from = at * 7 % (disk - 1000)
		}
		memory = append(memory, keyed(from, 1000))
	}
	t, w, _, err := written(ctx, c, t1, 0, 1000)
	if err != nil {
		return nil, err
	}
	if err := writeAll(ctx, w, committed); err != nil {
		return nil, err
	}
	if _, err := w.Commit(ctx); err != nil {
		return nil, err
	}
	if err := writeAll(ctx, w, memory); err != nil {
		return nil, err
	}
	if err := settle(ctx, t); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(t.Path(), "bucket-0", "*.parquet"))
	if err != nil {
		return nil, err
	}
	scanned, union := 0, 0
	control := func() (time.Duration, error) {
		return timed(func() (err error) { scanned, err = plainScan(ctx, files); return err })
	}
	subject := func() (time.Duration, error) {
		return timed(func() (err error) { union, err = count(ctx, t.Scan()); return err })
	}
	ratio, k, s, err := sandwich(c.rounds, control, subject)
	if err != nil {
		return nil, err
	}
	perRow := float64(union) / float64(scanned) / ratio
	if err := w.Discard(ctx); err != nil {
		return nil, err
	}
	return []Result{{"H1", perRow, 0.8, "higher", "union read of 90 % files and 10 % memory over a plain stock scan of the same file, rows/s, one core",
		fmt.Sprintf("%.1f over %.1f M rows/s", rate(union, s), rate(scanned, k))}}, t.Close(ctx)
}

// plainScan reads all columns of Parquet files with stock arrow-go.
func plainScan(ctx context.Context, names []string) (rows int, err error) {
	for _, name := range names {
		n, err := scanFile(ctx, name)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

func scanFile(ctx context.Context, name string) (rows int, err error) {
	f, err := file.OpenParquetFile(name, false)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: 32 << 10}, memory.DefaultAllocator)
	if err != nil {
		return 0, err
	}
	records, err := r.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return 0, err
	}
	defer records.Release()
	for records.Next() {
		rows += int(records.RecordBatch().NumRows())
	}
	if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return rows, nil
}

// commit measures prepare and commit of rows in memory against the stock Parquet
// encode of the final rows with the same physical columns, without fsync.
func commit(c *config) ([]Result, error) {
	defer onCores(1)()
	ctx := context.Background()
	t1 := shapes["t1"]
	t, w, _, err := written(ctx, c, t1, c.rows, 1000)
	if err != nil {
		return nil, err
	}
	if _, err := w.Commit(ctx); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(t.Path(), "bucket-0", "*.parquet"))
	if err != nil {
		return nil, err
	}
	final, err := load(ctx, files)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.Close(ctx), t.Close(ctx)); err != nil {
		return nil, err
	}
	rows := int(final.NumRows())
	control := func() (time.Duration, error) {
		return timed(func() error { return stockEncode(final, filepath.Join(c.dir, "control.parquet")) })
	}
	subject := func() (time.Duration, error) {
		t, w, _, err := written(ctx, c, t1, c.rows, 1000)
		if err != nil {
			return 0, err
		}
		if err := settle(ctx, t); err != nil {
			return 0, err
		}
		d, err := timed(func() error { _, err := w.Commit(ctx); return err })
		return d, errors.Join(err, w.Close(ctx), t.Close(ctx))
	}
	ratio, k, s, err := sandwich(c.rounds, control, subject)
	if err != nil {
		return nil, err
	}
	return []Result{{"H10", 1 / ratio, 0.75, "higher", "prepare and commit of rows in memory over the stock Parquet encode of the final rows, one core, no fsync",
		fmt.Sprintf("%.2f over %.2f M rows/s", rate(rows, s), rate(rows, k))}}, nil
}

// load reads files into one table.
func load(ctx context.Context, names []string) (arrow.Table, error) {
	f, err := os.Open(names[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if len(names) != 1 {
		return nil, fmt.Errorf("%d data files where one was expected", len(names))
	}
	return pqarrow.ReadTable(ctx, f, parquet.NewReaderProperties(memory.DefaultAllocator), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
}

func stockEncode(rows arrow.Table, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1), parquet.WithDictionaryDefault(false))
	return pqarrow.WriteTable(rows, f, 128<<10, props, pqarrow.DefaultWriterProps())
}
