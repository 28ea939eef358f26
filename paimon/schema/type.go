package schema

// Kind is the root of a Paimon data type (FORMAT §2.2).
type Kind uint8

// Kinds in the order of the format's type list.
const (
	Boolean Kind = iota + 1
	TinyInt
	SmallInt
	Int
	BigInt
	Float
	Double
	Decimal
	Char
	VarChar // STRING is VARCHAR(MaxLength)
	Binary
	VarBinary // BYTES is VARBINARY(MaxLength)
	Date
	Time         // stored as milliseconds of the day
	Timestamp    // without time zone
	TimestampLTZ // with local time zone
	Array
	Map
	Multiset
	Row
	Variant // named, so that it can be refused by name
	Blob
	Vector
	Geometry
	Geography
)

// MaxLength is the length of STRING and BYTES.
const MaxLength = 2147483647

// Type is one Paimon data type. Fields that do not belong to the Kind are zero.
type Type struct {
	Kind     Kind
	Nullable bool
	Length   int     // Char, VarChar, Binary, VarBinary, Vector
	Prec     int     // Decimal 1..38; Time, Timestamp, TimestampLTZ 0..9
	Scale    int     // Decimal
	Elem     *Type   // Array, Multiset, Vector; value of a Map
	Key      *Type   // Map
	Fields   []Field // Row
	Param    string  // Geometry, Geography: the text between the parentheses
}

// Field is a named column or row member. ID is stable over renames; columns are
// matched between schema versions by it and never by name.
type Field struct {
	ID          int
	Name        string
	Type        Type
	Description string
	Default     *string // write-time default, nil when there is none
}
