// Package path knows where the files of a table are and what their names mean
// (FORMAT §1). It builds names, it touches no storage.
//
// # Layout
//
//	<warehouse>/<db>.db/<table>/                     Root
//	    schema/schema-<id>                           SchemaFile
//	    snapshot/snapshot-<id>, LATEST, EARLIEST     Snapshot, LatestHint, EarliestHint
//	    manifest/<name>   index/<name>               Manifest, Index: shared by all branches
//	    tag/tag-<name>    consumer/consumer-<name>   Tag, Consumer
//	    metadata/                                    see package progress
//	    branch/branch-<b>/{schema,snapshot,...}      Branch
//	    [<data-file.path-directory>/]k1=v1/k2=v2/bucket-<n>/<file>   DataDir, DataFile
//
// # Partition text
//
// A partition value has a text (PartitionText), which is escaped into the
// directory name (Escape) and stands unescaped in the offsets file. The text is
// for finding files only: several values may share one text (null, "" and " " are
// all the default name), so a row's value comes from the manifest.
//
// # Guarantees
//
//   - Names that come from a table go through CheckName before they are joined:
//     one clean component, nothing that leads out of its directory.
//   - No component is longer than MaxComponent bytes; PartitionText and
//     CheckPartition refuse longer ones with errs.Invalid.
//
// # Caveats
//
// FLOAT and DOUBLE have the text of Java 19 and later, the shortest that reads
// back as the same number; earlier Java versions print a digit more for a few
// values. With partition.legacy-name=false the types TIME and TIMESTAMP WITH LOCAL
// TIME ZONE have no text here and are refused.
package path
