package bucket

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/merge"
)

// Readers work on published views while the owner writes, seals, consolidates and
// reclaims; the race detector watches the prefixes of the open chunk.
func TestReadersWorkWhileTheOwnerWrites(t *testing.T) {
	s := newState(keyed(t))
	var published atomic.Pointer[View]
	published.Store(s.View())
	var stop atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !stop.Load() {
				v := published.Load()
				runs, err := v.Runs(0, 1<<40)
				if err != nil {
					t.Error(err)
					return
				}
				rows := 0
				for _, r := range runs {
					b := r.Block(nil)
					rows += b.Rows
					for c := range b.Columns {
						_ = b.Columns[c].ValueStr(b.Rows - 1)
						r.Stat(c)
					}
				}
				if len(v.Segments) > 0 && rows == 0 {
					t.Error("a view lost its rows")
				}
			}
		})
	}
	for i := range 1500 {
		json := fmt.Sprintf(`[{"k":%d,"a":%d,"s":"s%d"}]`, i*7919%1000, i, i)
		if i > 300 {
			json = fmt.Sprintf(`[{"k":%d,"a":null,"s":null}]`, i)
		}
		var kinds []int8
		if i > 200 {
			kinds = []int8{merge.KindDelete}
		}
		write(t, s, int64(i), json, kinds, nil)
		published.Store(s.View())
		if i%400 == 399 {
			s.Seal(int64(i))
			consolidate(t, s, int64(i))
			published.Store(s.View())
		}
	}
	stop.Store(true)
	readers.Wait()
}

func TestAViewShowsTheConsolidatedSealedSegment(t *testing.T) {
	s := newState(keyed(t))
	for i := range FanInMax + 1 {
		write(t, s, int64(i), bigBatch(0, 64), nil, nil)
	}
	s.Seal(FanInMax + 1)
	runs, err := s.View().Runs(0, FanInMax+1)
	require.NoError(t, err)
	require.Len(t, runs, FanInMax+1)
	consolidate(t, s, FanInMax+1)
	runs, err = s.View().Runs(0, FanInMax+1)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, 64, runs[0].Rows)
}

// Bytes and elements that lie under a null are no part of the value.
func TestWhatLiesUnderANullIsNotKept(t *testing.T) {
	table := keyed(t)
	const rows = 64
	keys, positions, data := make([]int64, rows), make([]int32, rows+1), make([]byte, rows)
	for i := range keys {
		keys[i], positions[i+1], data[i] = int64(rows-i), int32(i+1), 'x'
	}
	none := make([]byte, rows/8)
	rec := array.NewRecordBatch(table.ArrowSchema(), []arrow.Array{
		array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Int64, rows, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(keys))}, nil, 0, 0)),
		array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Int32, rows, []*memory.Buffer{memory.NewBufferBytes(none), memory.NewBufferBytes(make([]byte, 4*rows))}, nil, rows, 0)),
		array.MakeFromData(array.NewData(arrow.BinaryTypes.String, rows, []*memory.Buffer{
			memory.NewBufferBytes(none), memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(positions)), memory.NewBufferBytes(data),
		}, nil, rows, 0)),
	}, rows)
	p, err := NewPreparer(table).Prepare(rec, nil, nil)
	require.NoError(t, err)
	b := p.Parts[0].Block
	require.Equal(t, rows, b.Columns[2].NullN())
	require.Zero(t, b.Columns[2].Data().Buffers()[2].Len())
	require.EqualValues(t, rows*(8+4+4+4)+4+2*rows/8, p.Bytes)
}
