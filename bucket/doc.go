// Package bucket is the memory of one partition-bucket, and the preparation of
// batches for it. It is pure: no goroutine, lock, clock or I/O. One owner calls
// the methods of a State one at a time; everything that a State hands out is
// immutable and may be read anywhere, for as long as somebody has it.
//
// # Life of a batch
//
//	Preparer.Prepare     any goroutine: validate everything, split by
//	      |              partition-bucket, sort by key, copy
//	      v
//	State.Append         stamp: first offset, first sequence number, epoch
//	      |
//	      v
//	State.View           publish an immutable picture
//
//	State.Seal           the building segment becomes a sealed one
//	State.TakePrepare    sealed segments go to data files
//	State.Reclaim        committed segments are dropped
//
// # Model
//
//	sealed   [0,4000)     [4000,9000)      building [9000, ...
//	         run run run  run run          run run run | open chunk
//
// A run is a batch of 64 rows or more, sorted by key in a primary-key table.
// Smaller batches go to the open chunk of the segment: columns that grow, of which
// a view sees a prefix that is never written again. A chunk is sorted when
// somebody reads it. Sequence numbers of a run are a base and the 32-bit sort
// permutation, not a column. Batches with nested columns are always runs.
//
// Consolidation bounds the fan-in of reads: more than FanInMax runs of similar
// size are merged to one by a Job on a worker, within one segment and at or below
// the frontier; superseded versions of a key are dropped, deletes are kept.
//
// # Guarantees
//
//   - A bad row refuses its whole batch with errs.ErrInvalid; the message names
//     column and row, and nothing changed.
//   - Offsets of the engine are contiguous, those of the caller strictly
//     increasing. Counters move only when a part was accepted, and never reach
//     the end of 64 bits.
//   - A view yields the same rows forever. Rows of epochs above the frontier of a
//     plan are left out; a run that cannot leave them out is ErrRetryPlan.
//   - Memory is on the Go heap, in buffers of exactly the size of the rows, and
//     nothing of a caller's record is kept.
//
// # Caveats
//
//   - Bytes counts the rows of an open chunk as if its columns were full; the
//     spare place of one chunk (below 8 MiB, usually below 100 KiB) and its sorted
//     copy after a read come on top.
//   - Two goroutines must not prepare the same record at the same time: Arrow
//     computes null counts of slices lazily, in place.
package bucket
