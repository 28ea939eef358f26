// Package snapshot is the committed side of a table: which data files a snapshot
// has, how far the input is committed, and how a prepared commit becomes the next
// snapshot while other engines commit as well.
//
// # Model
//
// A table is a chain of immutable snapshots. Each names a base and a delta list of
// manifests (FORMAT §3, §4); the live files are base plus delta. Progress, the
// committed end offset of every partition-bucket, travels in the snapshot
// properties (FORMAT §11); engines that do not know it leave it out:
//
//	id        7        8        9        10        11
//	kind    APPEND   APPEND   COMPACT  OVERWRITE  APPEND
//	by       ours    other    other     other      other
//	carries  {b0:5}    -        -          -         -
//	holds    {b0:5}  {b0:5}   {b0:5}      {}        {}      <- Progress: inherited
//
// A session adopts a snapshot. What came after it is read as a Chain, and the same
// rules decide for a plan, for a commit attempt and for the next
// adoption: Chain.Check and Chain.CheckOverwrites.
//
// # Guarantees of Commit
//
//   - It publishes by create-if-absent only, and only where the newest progress is
//     exactly what each range follows: no gap, no zombie, no lost foreign row.
//   - Everything a snapshot refers to is durable before it exists.
//   - After any doubtful answer the stored bytes decide. Ours means: our own bytes,
//     or in an older snapshot our own files; user and identifier prove nothing.
//   - Nothing that a doubtful attempt wrote is deleted before somebody else's
//     snapshot holds its id. Data files are never deleted by a commit.
//   - The number of attempts, the waits and the total time are bounded by the
//     table's options.
//
// # Guarantees of reading
//
// Hints are never trusted. Names found in a table are clean components or the file
// that holds them is corrupt. A file that disappeared is errs.ErrSnapshotExpired
// when its snapshot did too, else errs.ErrCorrupt; there is no partial result.
//
// # Caveats
//
// An engine that publishes by an overwriting rename can replace any snapshot, and
// a base that is replaced between plan and publish cannot be seen then: the next
// Verify or Follow names it. A consumer file of a commit user that never comes
// back keeps snapshots from being expired until it is deleted. A position belongs
// to exactly one commit: one without a position leaves none.
//
// # Rooms
//
// plan.go and request.go are pure. The rest does I/O through fs.FileIO in the
// caller's goroutine; clock, uuids and waiting come in as Env. There are no
// goroutines and no locks: caches are copied on insertion.
package snapshot
