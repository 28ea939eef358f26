// Package harness loads a table through the engine and verifies every answer
// while it is loaded. The command sim is a thin shell around Run.
//
//	report, err := harness.Run(ctx, harness.Config{
//		Source: harness.Load{Kind: harness.T1, Total: 1_000_000, Batch: 1000, Buckets: 2,
//			Profile: harness.Profile{Seed: 7, Keys: harness.KeysRandom, Updates: 0.2, Deletes: 0.05}},
//		Dir: dir, Seed: 7, Writers: 2, Readers: 2, CommitInterval: time.Second,
//	})
//
// The error is a *Mismatch when the engine returned wrong rows.
//
// # Model
//
//	Source --jobs--> Writers --in order--> the writing loop ---> table
//	(pure)           generate, hash,       owns the writer         |  ^
//	                 Writer.Prepare             | epoch, changes   |  | commits
//	                                            v                  v  |
//	                                          Model <--frontier-- Readers, watcher
//
// A Source yields the same batches each time it is read: generated rows (Load),
// the history of a git repository (Git), or a file of changes (Changes).
//
// The model is a map from the hash of a key to the hash of its row, and a digest
// of all rows: their number and two sums over the row hashes. It keeps the digest
// of every boundary between two writes that a read may still report. A reader
// digests what it read and compares with the boundary that the read is at:
//
//	union read               the writes with epochs up to Reader.Frontier; the
//	                         frontier is at or above every write that had returned
//	                         before the read began
//	read of the newest       the committed offsets of the snapshot add up to a
//	snapshot                 number of input rows, which must be a boundary
//	read by splits           as a union read, planned first and read in reverse
//	count                    the number of rows only
//
// A write can be visible before its caller knows its epoch, and a cut takes an
// epoch too. So a write is announced before it is made, and a comparison waits
// until the announced writes are settled: no epoch is guessed.
//
// When a digest differs, the source is read again from the start up to that
// boundary, and the rows are compared one by one: the report names the first
// differing rows, what they should be, and what the writes did to them.
//
// At the end the table is opened again from disk and compared once more; a source
// that knows its end state from elsewhere (git ls-tree, expected/final.jsonl.gz)
// compares that as well.
//
// # Freshness
//
// One row in a thousand of a generated load, at most one a batch, is a marker: a
// key of its own before all others. Its time is taken just before the write that
// holds it; a goroutine scans for it again and again until a scan returns it.
//
// # Guarantees
//
//   - The input and the end state depend on the source alone: not on the number of
//     writers or readers, on time, or on commits.
//   - Every row that a read returns is compared, in all columns.
//   - An interrupted or timed run commits and verifies what it wrote.
//
// # Caveats
//
//   - Keys and rows are told apart by hashes of 64 bits. Among a hundred million
//     random keys of several columns, the chance that two share a hash is 1 in 3700;
//     it would be reported as a difference. BIGINT keys cannot collide.
//   - The order of rows is not compared.
//   - A read keeps its batches until it is compared, up to 16 million rows; of a
//     larger result a difference is reported without the rows.
//   - The model takes about 50 bytes a live key.
//   - Rates are those of a machine that generates, writes, commits, reads and
//     verifies at the same time.
package harness
