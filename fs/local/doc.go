// Package local is the fs.FileIO of the operating system's file system, on Linux
// and macOS. On Windows every operation is refused: it has neither the rename
// nor the directory sync that the guarantees rest on.
//
// # Publication
//
// A final name appears by link(2) of a complete temporary file in the same
// directory, which fails when the name is taken, whoever took it:
//
//	write .snapshot-7.<uuid>.tmp -> fsync -> link snapshot-7 -> remove tmp -> fsync directory
//
// Where a file system knows no hard links, renameat2(RENAME_NOREPLACE) or
// renamex_np(RENAME_EXCL) does the same; where it knows neither, creating is
// refused as unsupported. A plain rename, which would overwrite, is used by
// Overwrite alone. Other engines may publish by overwriting rename: that destroys
// a file of ours and cannot be prevented from here.
//
// # Durability
//
//	                   SyncNone   SyncCommit (default)     SyncAll
//	Writer.Commit      -          -                        file, then directory
//	CreateIfAbsent     -          file, then directory     file, then directory
//	Overwrite          -          -                        file, then directory
//	Sync(names)        -          files, then directories  files, then directories
//
// "Directory" includes every ancestor whose own entry this FS has not made
// durable yet, so a new partition survives together with its first file.
// A file whose fsync failed once is never reported durable afterwards: the kernel
// may have dropped the pages, and a second fsync that succeeds would prove
// nothing. Write such a file again under a new name.
//
// # Caveats
//
//   - Names are cleaned and used as they are: relative ones start at the working
//     directory, symbolic links are followed, and ".." leads upwards. An FS is no
//     jail. That names inside a table are clean single components is checked
//     where they are read.
//   - Modes are 0666 and 0777 less the umask.
//   - A temporary file of a process that died stays; List hides it.
package local
