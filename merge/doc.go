// Package merge holds the sorted-run algebra of the engine: key order, sorting a
// batch, merging any number of sorted runs into one key-unique run, and copying
// the rows that survive. It works on columns and selections; a row is never a
// value of its own, and nothing is allocated per row.
//
// # Model
//
// A [Block] is an immutable group of rows of one partition-bucket. A [Source]
// yields the blocks of one sorted run. [NewUnion] turns many sources into one
// whose keys are unique: of the rows with one key the row with the highest
// sequence number survives (deduplicate). [Sections] tells which files and
// memory runs have to meet in a union at all.
//
// A union works in windows:
//
//	source 0  ....|=========|.......      | one window: all rows up to a key |
//	source 1  ..|======|............      1. cut one slice a source by galloping
//	source 2  .....|==============|.      2. order row numbers by 8-byte key prefix
//	               <-- window -->         3. drop older versions and deletes
//	                                      4. copy the columns of the survivors
//
// A window never passes the smallest last key of the blocks at hand, so no row
// that is still unread can belong into it; sampled splitters keep it near 64 K
// rows so that its columns stay in the cache. Where one run is alone, its
// arrays are sliced and nothing is copied.
//
// # Key order
//
// Columns in key order, nulls first; integers, dates, times and timestamps
// numerically, false before true, strings and binaries by unsigned bytes,
// decimals numerically, FLOAT and DOUBLE as Java compares them (-0.0 before 0.0,
// every NaN equal and last). Source of the rule: the format's generated key
// comparators.
//
// # Guarantees
//
// The result does not depend on how a run is cut into blocks. An error of a
// source, or of the context, is returned by Next, nothing follows it, and no
// block with a part of a window is handed out after it. Output that was copied
// lives in Options.Alloc; output that was sliced lives where its source put it.
//
// # Caveats
//
// The package trusts the key order of blocks that were built in memory. Bytes
// from files pass through [NewFileSource], which checks order and uniqueness.
// Columns of types that the engine does not write (dictionaries, unions, views)
// are copied by a slow general path.
package merge
