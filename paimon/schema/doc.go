// Package schema holds what a table is made of: data types, columns, the schema
// file schema/schema-<id>, the table options, and the mapping of types to Arrow.
//
// # Model
//
//	schema-<id> (JSON, untrusted)          columns of an Arrow schema
//	        |  Parse                               |  FromArrow
//	        v                                      v
//	     *Schema  <------------- New ------------ []Field
//	        |  \
//	        |   +--> ParseOptions -> Options -> CheckRead, CheckWrite
//	        |   +--> ArrowSchema, ArrowField, ArrowType
//	        v  Marshal
//	schema-<id>
//
// A Schema is immutable; schema evolution makes the next one. Columns of two
// versions belong together by field id (FieldByID) and never by name.
//
// # Guarantees
//
//   - Parse accepts at most MaxFileBytes, allocates at most a stated multiple of
//     the input (see jsontree), and never panics. Damage is errs.ErrCorrupt with
//     file and key path; a newer version or an unknown type is
//     errs.ErrUnsupported.
//   - Parse(Marshal(s)) equals s. Unknown keys of a file are ignored, so they do
//     not survive.
//   - Ids of a parsed schema are unique over columns and everything nested, and
//     not above HighestFieldID.
//   - Every option is honoured, known to be harmless (optionrules.go says why),
//     or refused with its key and value. A schema from New passes CheckWrite.
//
// # Ids
//
//	0 ...                           columns and ROW members, depth-first
//	536870911 -/+ 1024*f +/- d      map keys / elements and values, in files only
//	1073741823 + id                 _KEY_<column>
//	2147483642 ... 2147483646       _ROW_ID rowkind _LEVEL _VALUE_KIND _SEQUENCE_NUMBER
//
// # Caveats
//
// Lengths of CHAR, VARCHAR, BINARY and VARBINARY, and null in NOT NULL columns,
// are the writer's to check: Arrow types do not carry lengths. TIME is kept in
// milliseconds whatever its precision.
package schema
