// Package progress reads and writes what travels with a snapshot besides rows: the
// committed end offset of every partition-bucket, and the engine's own record of
// who published it.
//
// # Offsets
//
// The snapshot property realtime.offsets names a file in the metadata directory
// (FORMAT §11). It is the whole map, written once and never changed:
//
//	{
//	    "version": 1,
//	    "offsets": [
//	        {
//	            "partition": {"dt": "a/b", "region": "cn"},   texts before escaping, {} without partitions
//	            "bucket": 10,
//	            "offset": 12                                  rows [0, 12) are on disk
//	        }
//	    ]
//	}
//
// Entries are sorted by the (key, text) pairs of the partition, keys in byte
// order, then by bucket. The stored name is the full path the writer used; when
// the table has moved since, the file of the same base name in its own metadata
// directory is meant (Candidates).
//
// # Record
//
// Every snapshot published here has a second property, tideline.session, at most
// MaxInlineBytes of compact JSON:
//
//	{"version":1,"session":"<uuid>","attempt":"<uuid>","users":[["loader-1",17]],"position":"<base64>"}
//
//	session   the writing session; another one must not continue its ranges
//	attempt   the attempt to publish; tells the author of a doubtful publish
//	users     newest commit identifier of each commit user, the most recently
//	          seen first, at most MaxUsers
//	position  the caller's opaque position, standard base64, absent for none
//
// When that would be longer, the two last keys move to a file of their own in the
// metadata directory, written once before the snapshot, and the property names
// it by its base name, so that moving the table does no harm:
//
//	property                                          file metadata/<uuid>.position
//	{"version":1,"session":s,"attempt":a,    ----->   {"version":1,"attempt":a,
//	 "file":"<uuid>.position"}                         "users":[...],"position":"..."}
//
// The attempt in the file must be that of the property, so a file of another
// attempt is never taken for it. Session and attempt are always in the property:
// a doubtful publish is judged without reading a second file.
//
// # Guarantees
//
// Everything read is untrusted: sizes, nesting and counts are capped before
// memory is spent, damage is errs.ErrCorrupt with file and key path, versions
// other than 1 are refused. Marshal output is deterministic and is always
// accepted by Parse. The package touches no storage.
//
// # Caveats
//
// Commits of other engines drop both properties; the newest older snapshot that
// has them still holds then. A commit made here on top must publish them again.
package progress
