// Package jsonl is the text form of rows: one JSON object a line. The command
// line, the harness and the conformance checks print and read rows with it.
//
// # How values are written
//
//	BOOLEAN                true, false
//	TINYINT..BIGINT        number
//	FLOAT, DOUBLE          number, the shortest that reads back as the same value of
//	                       its width; "NaN", "Infinity", "-Infinity"
//	DECIMAL(p,s)           string with exactly s digits behind the point
//	CHAR, VARCHAR          string
//	BINARY, VARBINARY      string of lower-case hexadecimal digits
//	DATE                   "YYYY-MM-DD"
//	TIME(p)                "hh:mm:ss[.f]" with p digits, at most 3
//	TIMESTAMP(p)           "YYYY-MM-DD hh:mm:ss[.f]" with p digits
//	TIMESTAMP_LTZ(p)       the same in UTC with a final Z
//	ARRAY                  array
//	MAP                    array of [key, value] pairs
//	MULTISET               array of [element, count] pairs
//	ROW                    object
//	NULL                   null
//
// Keys stand in schema order. Years outside 0 to 9999 have a sign, as in ISO 8601.
//
// # What is read besides
//
// Everything that is written is read back as the same value. Accepted as well:
// numbers in strings, numbers for DECIMAL, a T between date and time, zone offsets
// (a time with a zone becomes UTC, one without is taken as UTC), times without
// seconds, upper-case hexadecimal digits, a MAP or MULTISET as an object, keys in
// any order, and absent keys for NULL.
//
// Nothing is rounded or cut: a value that the type cannot hold is refused with
// errs.ErrInvalid, and the message names the column. A refused row leaves the
// decoder as it was.
//
// # Caveats
//
// Lengths of CHAR, VARCHAR, BINARY and VARBINARY are not checked: other engines store
// longer values. Map keys that are null can be written but not read. Invalid UTF-8 is
// written as U+FFFD.
package jsonl
