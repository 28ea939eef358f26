// Package datafile reads and writes the Parquet data files of a table: bytes in
// the layout of FORMAT §7 on one side, Arrow record batches in the layout of
// schema.ArrowType on the other. It has no policy: which files, which columns,
// where they roll over and what is pruned is decided above.
//
// # Model
//
//	write   RecordBatch ─ flat column ───────────────┐
//	                    └ nested: shred into levels ─┴─> leaf writers ─> row groups ─> footer
//	                    └ statistics per column ───────────────────────> Result
//
//	read    footer ─ checked, then decoded ─> wanted columns laid over the file's schema
//	        chunk ─> pageReader ─> chunkDecoder ─> leafBlock ─> assembler ─> RecordBatch
//	                 (bounds)      (seam)          (levels,      (nesting,    └─ Mapping: other
//	                                                packed        validity)      schema version
//	                                                values)
//
// A Writer takes the physical columns in file order; system columns (_KEY_*,
// _SEQUENCE_NUMBER, _VALUE_KIND) are ordinary fields with their reserved ids. A
// Reader serves columns by the names of the file's own schema version. Evolve
// plans the way from one schema version to another by field id.
//
// # What is written
//
// Message paimon_schema, field ids everywhere, data page v1, zstd level 1,
// PLAIN values; a dictionary for _VALUE_KIND and for the columns that the caller
// names. Chunks of numbers that zstd does not make smaller, by a sample of the
// first rows, are stored uncompressed. No DELTA and no BYTE_STREAM_SPLIT encoding, which some releases of
// Paimon read wrongly or not at all. INT96 timestamps use floor division.
//
// # What is read
//
// Everything that other writers are known to produce: decimals as INT32, INT64,
// FIXED_LEN_BYTE_ARRAY or BYTE_ARRAY; timestamps in any unit or as INT96 with
// negative nanoseconds; lists of two levels; nullable system columns; data pages
// v1 and v2; dictionaries that fall back in mid-chunk; all codecs but LZO.
// Whatever was stored, the arrays have exactly the type of schema.ArrowType.
//
// # Guarantees
//
//   - Bytes of a file are hostile. The footer is walked before a library decodes
//     it, every chunk lies inside the file, and no buffer is larger than what the
//     file justifies: pages above 32 MiB must not claim more than 1024 times
//     their compressed size, none may pass 256 MiB, and a batch shrinks where
//     rows are wide. A column of one batch stays below 2 GiB of text and 32 Mi
//     list elements, however much a dictionary or run lengths expand to. Panics
//     of the libraries become errors.
//   - Damage is ErrCorrupt with the file's name, a missing feature ErrUnsupported,
//     a column that is not there ErrInvalid; failures of the store stay what they
//     are. After a failed Next no partial batch was passed on.
//   - Batches belong to the caller, who releases them. They come from the
//     caller's allocator and outlive reader and file. Page buffers never escape.
//   - Nothing starts a goroutine. Writer, Reader and Batches serve one goroutine
//     each; Mapping and Pool may be shared.
//
// # Caveats
//
//   - Arrow holds timestamps of more than microseconds as 64-bit nanoseconds, so
//     values outside the years 1677 to 2262 are refused when they are read.
//   - Ranges of row groups are not given for FLOAT and DOUBLE: writers disagree
//     on NaN, which is the greatest value here.
//   - Page checksums are not verified and page indexes not used.
//   - Nulls in a column that is NOT NULL are damage, for top-level columns and
//     map keys; inside other nested values they are passed on.
package datafile
