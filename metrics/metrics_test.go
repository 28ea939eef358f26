package metrics_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gather returns the gauges by name and labels.
func gather(t *testing.T, r *prometheus.Registry) map[string]float64 {
	families, err := r.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			out[name] = m.Gauge.GetValue()
		}
	}
	return out
}

// The gauges follow a table from open to close.
func TestCollector(t *testing.T) {
	ctx := t.Context()
	columns := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	table, err := tideline.Create(ctx, t.TempDir()+"/t", tideline.Definition{Columns: columns, PrimaryKey: []string{"id"}}, tideline.Options{})
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewCollector("orders", table))

	before := gather(t, registry)
	require.Zero(t, before["tideline_memory_rows state=building table=orders"])
	require.EqualValues(t, 1<<30, before["tideline_memory_limit_bytes table=orders"])

	writer, err := table.Writer(ctx)
	require.NoError(t, err)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, columns, strings.NewReader(`[{"id":1},{"id":2}]`))
	require.NoError(t, err)
	defer batch.Release()
	ack, err := writer.Write(ctx, batch)
	require.NoError(t, err)
	during := gather(t, registry)
	require.EqualValues(t, 2, during["tideline_memory_rows state=building table=orders"])
	require.Positive(t, during["tideline_memory_bytes state=building table=orders"])
	require.EqualValues(t, 2, during["tideline_bucket_lag_rows bucket=0 partition= table=orders"])
	require.EqualValues(t, 1, during["tideline_bucket_runs bucket=0 partition= table=orders"])
	require.EqualValues(t, ack.Epoch, during["tideline_frontier_epoch table=orders"])
	require.EqualValues(t, 1, during["tideline_session_live table=orders"])

	c, err := writer.Commit(ctx)
	require.NoError(t, err)
	after := gather(t, registry)
	require.EqualValues(t, c.ID, after["tideline_adopted_snapshot table=orders"])
	require.Zero(t, after["tideline_memory_rows state=building table=orders"])
	require.Zero(t, after["tideline_bucket_lag_rows bucket=0 partition= table=orders"])

	_, err = writer.Write(ctx, batch)
	require.NoError(t, err)
	require.Error(t, writer.Close(ctx), "rows that no prepare took")
	require.Zero(t, gather(t, registry)["tideline_session_live table=orders"])
	require.NoError(t, table.Close(ctx))
	require.NotPanics(t, func() { gather(t, registry) })
}
