package main

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs/local"
)

// sandwich runs the control before and after the subject, several rounds, and
// returns the median ratio subject/control of times and both median times. A
// round in which the two controls differ by more than a fifth is measured again,
// a few times.
func sandwich(rounds int, control, subject func() (time.Duration, error)) (ratio float64, c, s time.Duration, err error) {
	var ratios []float64
	var controls, subjects []time.Duration
	for spare := rounds; len(ratios) < rounds; {
		runtime.GC()
		before, err := control()
		if err != nil {
			return 0, 0, 0, err
		}
		runtime.GC()
		mid, err := subject()
		if err != nil {
			return 0, 0, 0, err
		}
		runtime.GC()
		after, err := control()
		if err != nil {
			return 0, 0, 0, err
		}
		if drift := float64(before) / float64(after); spare > 0 && (drift > 1.2 || drift < 1/1.2) {
			spare--
			continue
		}
		mean := (before + after) / 2
		ratios = append(ratios, float64(mid)/float64(mean))
		controls, subjects = append(controls, mean), append(subjects, mid)
	}
	return medianFloat(ratios), median(controls), median(subjects), nil
}

func medianFloat(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// onCores limits the process for one measurement.
func onCores(n int) (restore func()) {
	old := runtime.GOMAXPROCS(n)
	return func() { runtime.GOMAXPROCS(old) }
}

// newTable makes an empty table without fsync; durability is not what is
// measured here.
func newTable(ctx context.Context, path string, d tideline.Definition) (*tideline.Table, error) {
	return tideline.Create(ctx, path, d, tideline.Options{
		IO: local.New(local.Options{Sync: local.SyncNone}), MemoryBytesMax: 8 << 30,
	})
}

func timed(f func() error) (time.Duration, error) {
	begin := time.Now()
	err := f()
	return time.Since(begin), err
}

// rate is rows a second in millions.
func rate(rows int, d time.Duration) float64 { return float64(rows) / d.Seconds() / 1e6 }
