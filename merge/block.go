package merge

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/paimon/schema"
)

// Layout names the columns of the blocks of one read or one bucket, and which of
// them are the key.
type Layout struct {
	Fields []schema.Field
	Key    []int // positions of the trimmed primary key in Fields, in key order; empty: append table
}

// Block is an immutable block of rows of one partition-bucket: in key order with
// unique or repeated keys (primary key) or in write order (append). Columns in
// memory live on the Go heap and need no release; columns decoded from files
// belong to the source that handed the block out (see Source).
type Block struct {
	Columns []arrow.Array // one per Layout field; nil where it was not asked for
	Rows    int
	Kinds   []int8  // row kinds 0..3; nil: every row is +I
	Seq     Numbers // sequence numbers; unused for append tables
	Unique  bool    // it is known that no two rows share a key; false: not known
}

// Numbers are the sequence numbers (or offsets) of a block without a column of
// int64 where that can be avoided: Base + Perm[i], Base + i when Perm is nil, or
// Explicit[i] when Explicit is set.
type Numbers struct {
	Base     int64
	Perm     []int32
	Explicit []int64
}

// At returns the number of row i.
func (n Numbers) At(i int) int64 {
	switch {
	case n.Explicit != nil:
		return n.Explicit[i]
	case n.Perm != nil:
		return n.Base + int64(n.Perm[i])
	default:
		return n.Base + int64(i)
	}
}

// Row kinds as the format numbers them.
const (
	KindInsert       int8 = 0 // +I
	KindUpdateBefore int8 = 1 // -U
	KindUpdateAfter  int8 = 2 // +U
	KindDelete       int8 = 3 // -D
)
