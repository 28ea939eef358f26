// Package manifest reads and writes the metadata chain of a Paimon table:
// snapshot files (FORMAT §3.1), manifest lists and manifests (§4), and reads
// index manifests (§4.7). It does no I/O; bytes come in and go out.
//
//	snapshot-N (JSON)
//	  +- base list  (Avro) -> manifest, manifest, ...   state of the snapshot before
//	  +- delta list (Avro) -> manifest, ...             ADD and DELETE of this commit
//	  +- index manifest (Avro)                          deletion vectors and indexes
//
// # State of a table
//
// The live files of a snapshot are Live over the entries of base and delta. A
// file is identified by seven fields (Identity); the same name can be live at one
// level and deleted at another. Merge makes one manifest out of several without
// losing a DELETE whose ADD stands elsewhere.
//
// # Generations
//
// Records are matched to the writer schema in the file by field name: every
// generation from 16 to 21 file fields, records inside ["null", record], record
// names of other engines, and unknown fields are read; a missing nullable field is
// null. Written files have the 20-field schema of Java, character for character.
// Codecs null, deflate, snappy and zstandard are read, zstandard is written.
//
// # Guarantees
//
//   - Bytes are hostile: counts and lengths are checked before memory is taken, a
//     panic of a library becomes errs.ErrCorrupt, and nothing partial is returned.
//   - A file decodes to at most 8 MiB + 256 times its size, and never to more than
//     1 GiB + 8 MiB; entries take at most 64 times the decoded bytes. A snapshot
//     file has at most MaxSnapshotBytes.
//   - Names that become path components are single components.
//   - The same entries and sync marker give the same bytes.
//
// # Caveats
//
//   - Entries of Read share memory with the decoded blocks: treat them as constant.
//     Holding one entry holds its block.
//   - An Avro file that ends early between two blocks is not noticed here; compare
//     the size and the counts in the manifest list.
//   - ORC and Parquet manifests of old engines are refused with
//     errs.ErrUnsupported, as are zstd windows above the decoded limit.
//   - _WRITE_COLS_SEQUENCES (data evolution) is read and never written: writing an
//     entry that has it is refused.
package manifest
