// Command bench measures the engine against control kernels that run before and
// after each measurement in the same process, so that a shared or drifting
// machine changes the figures but not the ratios. It prints a table and writes
// bench/results.json.
//
//	go run ./bench                   everything, one million rows
//	go run ./bench -rows 50000       a smoke run
//	go run ./bench -only H5,H9-p50   some
//
// # Model
//
//	control  subject  control    control  subject  control    ...
//	|------- one round -----|    |------- one round -----|
//	ratio of a round = subject / mean of its controls; reported: the median
//
// A round whose controls differ by more than a fifth is measured again. A control
// is plain Go (kernels.go) that does the part of the work nobody can avoid, and
// nothing else: sort and gather a batch, merge and gather runs, encode and scan
// Parquet with the stock library. docs/performance.md lists every id with its goal.
//
// # Rooms
//
// write.go, read.go and fresh.go hold the measurements, tables.go the rows (drawn
// with package harness), measure.go the rounds. peers/ is a module of its own, so
// that what is compared with there is no dependency of the engine.
//
// # Caveats
//
// Nothing is synced to disk. Some measurements run on one processor (GOMAXPROCS). A ratio says how
// far the engine is from its control, not how fast a machine is.
package main
