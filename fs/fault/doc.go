// Package fault wraps a store and breaks it on demand, deterministically.
//
// # Model
//
// Every call is an operation with a number, from 0, in the order of arrival:
// the methods of FileIO, and of the files and writers it hands out (Close, Name
// and Size excepted). A [Plan] decides about each:
//
//	           effect   caller sees
//	Pass       yes      the store's answer
//	Fail       no       an error
//	FailAfter  yes      an error (a lost reply)
//	Short      half     fewer bytes and no error, as a careless layer would say
//	Hang       no       nothing until its context is done, then that error
//
// An error-at-every-index test runs a script once without faults, takes
// [FS.Count], and runs it again for each index with [FailOnce], [FailFrom] and
// [LostReply].
//
// [FS.Log] tells what was called, for tests of order ("the snapshot is created
// after its manifests were synced") and for transcripts. [Plan.Hook] sees every
// operation before it runs: the place to take a mem.CrashClone.
//
// # Details
//
//   - Reads and writes of a handle hang on the context its file was opened with;
//     writers have no other.
//   - Short applies to reads and writes of handles. Elsewhere there is no half:
//     it fails with io.ErrShortWrite and no effect.
//   - FailAfter of Open closes the file, of Create aborts the writer: the caller
//     has no handle to end them with. FailAfter of a read or write reports zero
//     bytes although they went through.
//   - A hook runs without locks held and may use the wrapped store.
//   - Numbers are given under a lock; with several goroutines the order of
//     arrival is theirs.
package fault
