// Package mem is an fs.FileIO in memory that remembers what a power loss would
// take. It behaves like fs/local at its default level: CreateIfAbsent and Sync
// make files, their directories and the new ancestors durable; all else is lost
// or kept by chance.
//
// # Model
//
// Each file knows how many of its bytes are synced. Each directory knows its
// live entries and those on disk:
//
//	      live              disk               after a crash
//	a -> file 1        a -> file 1             a -> file 1
//	b -> file 2        -                       b or nothing        (create)
//	-                  c -> file 3             c or nothing        (delete)
//	d -> file 5        d -> file 4             file 5 or file 4    (replace)
//	e -> directory     -                       e or nothing at all (dir)
//
// Bytes that are not synced are lost page by page: a lost page before a kept one
// reads as zeros, behind the last kept one the file ends.
//
// [FS.CrashClone] draws one such outcome and returns it as a new, fully durable
// file system; the original goes on undisturbed, so a test can crash at every
// operation of one run. Temporary files take part, as they do on disk.
//
// # Caveats
//
//   - Only the last of several unsynced changes of one name can survive, not
//     one in between.
//   - Absolute and relative names mean the same tree; "file:" is accepted.
//   - Temporary names are numbered, so equal runs give equal trees.
package mem
