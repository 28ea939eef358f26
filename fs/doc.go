// Package fs is the seam between the engine and storage. Everything the engine
// reads or writes goes through [FileIO]; nothing above it opens a file itself.
//
// # Model
//
// Files are written once, read many times and removed; no file is ever changed
// in place. Three ways lead to a final name:
//
//	Create .. Write .. Commit   data files, manifests: unique names
//	CreateIfAbsent              snapshots, schemas: the one compare-and-create
//	Overwrite                   hint files: the latest content wins
//
//	            temporary name                final name
//	  Create   .data-1.parquet.<id>.tmp  -->  data-1.parquet   (ErrExist if taken)
//	  CreateIf .snapshot-7.<id>.tmp      -->  snapshot-7       (one winner)
//	  Overwrite .LATEST.<id>.tmp         -->  LATEST           (replaced in one step)
//
// Temporary names start with "." and end with ".tmp" ([IsTemp]); List leaves
// them out. A crash may leave some behind: they are garbage, nobody reads them.
//
// # Guarantees of every implementation
//
//   - A file under its final name is complete.
//   - CreateIfAbsent has exactly one winner among any number of processes that
//     use it; the others get an error that is ErrExist.
//   - An open File keeps its bytes even when its name is deleted.
//   - Errors are [*OpError]s: operation, name, cause. errors.Is finds ErrExist,
//     ErrNotExist, the context's error and the operating system's number
//     ([IsNoSpace], [IsReadOnly]).
//   - The context is checked before every operation that takes one.
//
// # Caveats
//
//   - An error other than ErrExist from CreateIfAbsent or Commit does not say
//     that nothing happened: read the name back before deciding.
//   - Durability after a power loss is promised for CreateIfAbsent and for what
//     Sync was called on, nothing else. After a power loss an unsynced file may
//     be missing, shorter than written, or hold zeros.
//   - Capabilities are declared, not guessed: the engine refuses to write to a
//     store that lacks one it needs.
//
// Stores: fs/local (the operating system), fs/mem (memory, with crash clones),
// fs/fault (any store, with faults on demand). fs/fstest holds the conformance
// test that each of them passes.
package fs
