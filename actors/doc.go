// Package actors is the session of an open table: every row that is in memory,
// and who may touch it. It is the only package that knows protoactor. Pure state
// lives below (package bucket, pipeline here); this package decides who calls it,
// in which order, and on which goroutine.
//
// # Model
//
//	caller -> Writer --Write, Cut---> bucket actor, one a partition-bucket
//	            |                       |  |    owns a bucket.State
//	            |                       |  +--> view, published by an atomic pointer
//	            |                       +--ack--> frontier --> the writer returns
//	            +--Spawn, Prepare---> coordinator, one a session
//	                                    owns lease, registry, waits for memory,
//	                                    pipeline of prepares, adoption, tickets
//	caller -> Session.Pin: frontier, registry, views, adopted, disk; no message
//
// The Writer, not the coordinator, is the sequencer. It gives each write and each
// cut the next epoch and posts it to the buckets that it touches, so every bucket
// sees epochs in order. The frontier is the highest epoch at and below which all
// those buckets have answered: what is at or below it is visible, all of it. A
// write returns when the frontier covers it.
//
// A plan (Session.Pin) reads the frontier first and the disk last, holds the
// segments of every view, and starts again when it looked between two changes.
//
// The budget counts the bytes of rows in memory. Bytes are taken before an epoch is
// given and come back with the last hold on them. When they do not suffice the
// write waits at the coordinator; when nothing under way can free any, it gets
// errs.ErrOverloaded instead.
//
// A prepare is a cut that workers write to files. The coordinator publishes
// prepares in the order of their cuts; see pipeline for its states.
//
// # What may block
//
//	in Receive                  nothing: no storage, no channel, no lock
//	in a reply, After, done     nothing: they post, or fill a buffered channel
//	in Offload, Compute         anything, until its context ends
//	in Session and Writer       the caller waits, with its context
//
// Slow work leaves an actor as a job and comes back as a message, so an actor
// handles each message in one turn. A job that panics comes back as an error.
//
// The mailbox (of our own, as the dispatcher) has no bound: the budget is taken
// before it. It handles Runtime.Batch messages and then gives the turn back. A
// writer may take the turn of an idle bucket itself (Runtime.CallerRuns).
//
// # Runtime
//
// Turns, time, slow work and randomness come from a Runtime. NewRuntime is the
// one of production. To live in an actor system that is there already:
//
//	runtime := actors.NewRuntime(system)
//	table, err := tideline.Open(ctx, path, tideline.Options{Runtime: runtime})
//	...
//	err = table.Close(ctx)
//	runtime.Close() // waits for jobs; the system stays the embedder's
//
// One runtime may serve many tables. A Runtime of one's own decides every order:
// with a Batch of one, each message is a decision.
//
// # Guarantees
//
//   - A failure poisons the session and restarts nothing: a bucket that came up
//     again would have lost its rows. Whoever waits gets an error at once, and
//     pinned plans stay readable.
//   - A commit that ended in doubt closes writing only (core.closeWriting): the
//     same prepare may be committed again.
//   - Session.Close returns after every job and every actor has ended.
//
// # Caveats
//
//   - A Writer serves one goroutine at a time and refuses a second one. Only a cut
//     in the background comes between, when the writer is free or waits for memory.
//   - A context counts while a call waits. A write that has an epoch, a prepare that
//     was cut and a commit that was asked for go on when their caller gives up.
//   - Buckets are never unloaded while the session lives.
//   - core is shared by all: it holds atomics and immutable values only.
package actors
