// Package messages holds what the actors say to each other: plain structs, no
// logic.
//
// Commands are imperative (Write, Cut, Commit), facts are in the past tense
// (Sealed, Flushed, Published). A command carries its own reply function, which
// is called exactly once, on the goroutine of the actor, and must not block; and,
// where only the holder of the writer lease may give it, the number of that
// lease, so that a bucket can refuse a writer that was replaced.
//
//	writer       --Write, Cut-------------------> bucket
//	writer       --OpenWriter, Spawn, Prepare---> coordinator
//	bucket       --Sealed-----------------------> coordinator
//	coordinator  --Reclaim, RaiseSequence, Rejoin, Retire--> bucket
//	workers      --Consolidated-----------------> bucket
//	workers      --Spawned, Flushed, Published, Followed--> coordinator
//
// A message is immutable once posted. The receiver does not keep a Write after it
// acknowledged it: the writer then uses it again.
package messages
