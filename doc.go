// Package tideline gives an Apache Paimon table real-time writes and union reads
// in pure Go.
//
// A row is queryable the moment Write returns, long before the next snapshot.
// Uncommitted rows live in memory, one actor per partition-bucket; a read merges
// the committed files with memory into one consistent answer, by primary key
// where the table has one. A commit is an ordinary Paimon snapshot that Flink,
// Spark, pypaimon and Java read, with the covered input offsets beside it, so
// that after a crash the caller replays its log from there: nothing lost,
// nothing twice.
//
//	             Write                    Scan().Read
//	caller -------+                            |
//	              | sort, split                | 1 frontier  2 views
//	              v                            | 3 adopted   4 snapshot last
//	     +-- bucket actor --+   published      v
//	     | building segment |   views     +---------+   union by key
//	     | sealed segments  |------------>|  merge  |-----------------> Arrow batches
//	     +------------------+             +---------+
//	              | PrepareCommit              ^
//	              v                            |
//	     level-0 files --Commit--> snapshot-N -+
//
// # Life of a table
//
// Open or Create gives a Table, by its path or by its name in a Catalog; any
// goroutine may use it. Table.Writer takes
// the one writer lease; Writer.Write makes a batch visible, all of it or none.
// Writer.Commit prepares (cuts all buckets at one point and writes files),
// commits (publishes a snapshot) and refreshes (adopts it and frees the memory it
// covers); each step has a call of its own as well, and Options.AutoCommit does
// them in the background.
//
// # Guarantees
//
//   - What Write returned is visible to every read that begins later; nobody ever
//     sees a part of a batch; each snapshot is such a cut as well.
//   - A read is one picture: files and memory neither overlap nor leave a hole.
//   - A commit is idempotent. After ErrOutcomeUnknown, or a cancelled wait, commit
//     the same Prepared again.
//   - Other engines may append and compact meanwhile: their rows survive, and ours
//     do. An overwrite of rows in memory, a rollback, or another writer on the same
//     bucket ends the session with an error that says so; nothing is lost silently.
//
// # Caveats
//
// Uncommitted rows are gone after a crash, by contract: keep your input until it
// is committed, and replay it from Table.Progress. Engines that publish by an
// overwriting rename can destroy any snapshot; that is detected and named, not
// prevented. What the table uses and this engine does not support is refused at
// open, by name.
//
// # Memory
//
// Records given to Write are copied; the caller releases them. Batches of a
// Reader are released by the reader at the next Next; retain one to keep it.
package tideline
