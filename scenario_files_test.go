package tideline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
	"github.com/tideline-db/tideline/snapshot"
)

// committedFiles are the files of the newest snapshot, all of one bucket.
func (w *world) committedFiles() []manifest.FileMeta {
	w.t.Helper()
	table := w.open()
	snap, err := table.Snapshot(w.t.Context())
	require.NoError(w.t, err)
	buckets, err := table.Committed().Files(w.t.Context(), snap, snapshot.Filter{})
	require.NoError(w.t, err)
	require.Len(w.t, buckets, 1)
	return buckets[0].Files
}

// A flush is cut into files of the table's target size, whose key ranges do not
// meet.
func TestFilesAreSplitByTheTargetSize(t *testing.T) {
	const target, n = 32 << 10, 20_000
	for name, def := range map[string]struct {
		keyed bool
	}{"primary key": {true}, "append": {}} {
		t.Run(name, func(t *testing.T) {
			options := []string{"target-file-size", fmt.Sprintf("%d b", target), "file.compression", "none"}
			w := newWorld(t, listed(options...))
			if def.keyed {
				w = newWorld(t, keyed(options...))
			}
			table, writer := w.session()
			var pairs []any
			for i := range n {
				pairs = append(pairs, i, fmt.Sprintf("%016x", uint64(i+1)*0x9E3779B97F4A7C15))
			}
			put(t, writer, pairs...)
			commit(t, writer)
			files := w.committedFiles()
			require.Greater(t, len(files), 8)
			total, last := int64(0), int64(-1)
			for i, f := range files {
				total += f.Rows
				require.Less(t, f.Size, int64(2*target), "file %d of %d", i, len(files))
				if i < len(files)-1 {
					require.Greater(t, f.Size, int64(target/2), "file %d of %d", i, len(files))
				}
				if def.keyed {
					key := []schema.Type{{Kind: schema.BigInt}}
					lo, err := row.Decode(key, f.MinKey)
					require.NoError(t, err)
					hi, err := row.Decode(key, f.MaxKey)
					require.NoError(t, err)
					require.Greater(t, lo[0].(int64), last)
					last = hi[0].(int64)
				}
			}
			require.EqualValues(t, n, total)
			require.Len(t, read(t, table.Scan()), n)
			require.NoError(t, writer.Close(t.Context()))
		})
	}
}

// What a file's statistics say, by the table's options.
func TestStatisticsModes(t *testing.T) {
	const long = "abcdefghijklmnopqrstuvwxyz"
	for options, want := range map[string]struct {
		columns []string // nil: all of them
		name    [2]any   // min and max of column name
		nulls   int64
	}{
		"":                                      {nil, [2]any{"abcdefghijklmnop", "z"}, 1},
		"metadata.stats-mode=full":              {nil, [2]any{long, "z"}, 1},
		"metadata.stats-mode=truncate(3)":       {nil, [2]any{"abc", "z"}, 1},
		"metadata.stats-mode=counts":            {nil, [2]any{nil, nil}, 1},
		"metadata.stats-mode=none":              {[]string{}, [2]any{}, 0},
		"fields.name.stats-mode=none":           {[]string{"id"}, [2]any{}, 0},
		"fields.name.stats-mode=full":           {nil, [2]any{long, "z"}, 1},
		"metadata.stats-keep-first-n-columns=1": {[]string{"id"}, [2]any{}, 0},
		"metadata.stats-mode=none,fields.name.stats-mode=full": {[]string{"name"}, [2]any{long, "z"}, 1},
	} {
		t.Run(options, func(t *testing.T) {
			var list []string
			for _, o := range strings.FieldsFunc(options, func(r rune) bool { return r == ',' }) {
				key, value, _ := strings.Cut(o, "=")
				list = append(list, key, value)
			}
			w := newWorld(t, listed(list...))
			table, writer := w.session()
			put(t, writer, 1, "z", 2, long, 3, nil)
			commit(t, writer)
			require.NoError(t, writer.Close(t.Context()))
			require.Len(t, read(t, table.Scan()), 3)

			file := w.committedFiles()[0]
			if want.columns == nil {
				require.False(t, file.HasStatsCols, "all columns, so the list of columns is left out")
				file.ValueStatsCols = []string{"id", "name"}
			} else {
				require.True(t, file.HasStatsCols)
				require.Equal(t, want.columns, append([]string{}, file.ValueStatsCols...))
			}
			types := make([]schema.Type, len(file.ValueStatsCols))
			at := -1
			for i, c := range file.ValueStatsCols {
				if types[i] = (schema.Type{Kind: schema.BigInt, Nullable: true}); c == "name" {
					types[i], at = schema.Type{Kind: schema.VarChar, Length: schema.MaxLength, Nullable: true}, i
				}
			}
			lo, err := row.Decode(types, file.ValueStats.Min)
			require.NoError(t, err)
			hi, err := row.Decode(types, file.ValueStats.Max)
			require.NoError(t, err)
			if at >= 0 {
				require.Equal(t, want.name, [2]any{lo[at], hi[at]})
				require.Equal(t, want.nulls, file.ValueStats.NullCounts[at])
			}
		})
	}
}
