// Package metrics exposes a table's gauges to Prometheus. It is a package of its
// own so that who does not use it does not link it.
//
//	prometheus.MustRegister(metrics.NewCollector("orders", table))
package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tideline-db/tideline"
)

// collectTimeout bounds one scrape: a bucket answers in microseconds.
const collectTimeout = 5 * time.Second

// Collector reads the gauges of one table at each scrape. Metrics carry the
// label table; those of a bucket also partition and bucket.
type Collector struct {
	table *tideline.Table
	rows  *prometheus.Desc
	bytes *prometheus.Desc
	limit *prometheus.Desc
	front *prometheus.Desc
	snap  *prometheus.Desc
	live  *prometheus.Desc
	runs  *prometheus.Desc
	lag   *prometheus.Desc
}

// NewCollector returns a collector for a table under a name.
func NewCollector(name string, table *tideline.Table) *Collector {
	label := prometheus.Labels{"table": name}
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tideline_"+metric, help, labels, label)
	}
	return &Collector{
		table: table,
		rows:  desc("memory_rows", "Rows in memory, every version counted, by state.", "state"),
		bytes: desc("memory_bytes", "Bytes in memory by state.", "state"),
		limit: desc("memory_limit_bytes", "Limit of the memory budget."),
		front: desc("frontier_epoch", "Write epoch up to which everything is visible."),
		snap:  desc("adopted_snapshot", "Id of the adopted snapshot, 0 without."),
		live:  desc("session_live", "1 while the session can write, 0 after it was poisoned."),
		runs:  desc("bucket_runs", "Sorted runs in memory that a read merges.", "partition", "bucket"),
		lag:   desc("bucket_lag_rows", "Offsets that no adopted snapshot covers.", "partition", "bucket"),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.rows, c.bytes, c.limit, c.front, c.snap, c.live, c.runs, c.lag} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	s, err := c.table.Stats(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(c.rows, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.rows, float64(s.BuildingRows), "building")
	gauge(c.rows, float64(s.SealedRows), "sealed")
	gauge(c.bytes, float64(s.BuildingBytes), "building")
	gauge(c.bytes, float64(s.SealedBytes), "sealed")
	gauge(c.bytes, float64(s.PinnedBytes), "pinned")
	gauge(c.limit, float64(s.LimitBytes))
	gauge(c.front, float64(s.Frontier))
	gauge(c.snap, float64(s.AdoptedSnapshot))
	live := 1.0
	if s.Poisoned != nil {
		live = 0
	}
	gauge(c.live, live)
	for _, b := range s.Buckets {
		gauge(c.runs, float64(b.Runs), b.Partition, strconv.Itoa(b.Bucket))
		gauge(c.lag, float64(b.Lag), b.Partition, strconv.Itoa(b.Bucket))
	}
}
