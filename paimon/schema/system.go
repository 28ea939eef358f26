package schema

import "strings"

// Names and ids of system fields (FORMAT §2.3).
const (
	KeyPrefix          = "_KEY_"
	SequenceName       = "_SEQUENCE_NUMBER"
	ValueKindName      = "_VALUE_KIND"
	LevelName          = "_LEVEL"
	RowKindName        = "rowkind"
	RowIDName          = "_ROW_ID"
	RealtimeOffsetName = "_REALTIME_OFFSET" // never in files we write

	KeyFieldBase  = 1073741823 // the id of _KEY_<col> is this plus the column's id
	RowIDID       = 2147483642
	RowKindID     = 2147483643
	LevelID       = 2147483644
	ValueKindID   = 2147483645
	SequenceID    = 2147483646
	elementIDBase = 536870911
)

// maxFieldID is the largest id of a user field, so that no _KEY_ field reaches
// the ids of the other system fields.
const maxFieldID = KeyFieldBase - 1

// KeyField is the copy of a key column at the front of a primary-key data file.
func KeyField(f Field) Field {
	return Field{ID: KeyFieldBase + f.ID, Name: KeyPrefix + f.Name, Type: f.Type}
}

// SequenceField is the row version column of a primary-key data file.
func SequenceField() Field {
	return Field{ID: SequenceID, Name: SequenceName, Type: Type{Kind: BigInt}}
}

// ValueKindField is the row kind column of a primary-key data file.
func ValueKindField() Field {
	return Field{ID: ValueKindID, Name: ValueKindName, Type: Type{Kind: TinyInt}}
}

// IsSystemName says whether a user column must not have this name.
func IsSystemName(name string) bool {
	switch name {
	case SequenceName, ValueKindName, LevelName, RowKindName, RowIDName, RealtimeOffsetName:
		return true
	}
	return strings.HasPrefix(name, KeyPrefix)
}

// ElementID is the id that the element of an array or vector, or the value of a
// map or multiset, has inside data files: field is the id of the nearest
// enclosing named field, depth the nesting below it, 1 for a direct element. The
// arithmetic is that of 32-bit integers.
func ElementID(field, depth int) int {
	return int(int32(uint32(elementIDBase) + 1024*uint32(field) + uint32(depth)))
}

// MapKeyID is ElementID for the key of a map or multiset.
func MapKeyID(field, depth int) int {
	return int(int32(uint32(elementIDBase) - 1024*uint32(field) - uint32(depth)))
}
