// Package arch holds the rules of the module's structure as tests; there is
// nothing to import here.
//
//   - Arrows: who may import whom inside the module, as one complete table. A
//     package without a line in it fails, so a new room is a decision.
//   - Third parties: protoactor-go is imported by actors alone; nobody uses cgo.
//   - Purity: below the actors there is no goroutine, no operating system, no
//     network, no clock and no global randomness. They are handed in.
//   - Locks: none where state has one owner.
//   - Tests wait for events, never for time to pass.
//
// The rules are read from syntax trees, one file at a time and whatever its build
// tags, so they hold for files that this platform does not build and say
// something even while a package does not compile. Imports of the module's own
// test files are free: a test may use any store or oracle.
package arch
