package fault

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/tideline-db/tideline/fs"
)

// Kind names a method.
type Kind string

// The operations that are counted.
const (
	Open           Kind = "open"
	Read           Kind = "read" // File.ReadAt
	Create         Kind = "create"
	Write          Kind = "write"
	Commit         Kind = "commit"
	Abort          Kind = "abort"
	CreateIfAbsent Kind = "create-if-absent"
	Overwrite      Kind = "overwrite"
	Stat           Kind = "stat"
	List           Kind = "list"
	Delete         Kind = "delete"
	Sync           Kind = "sync"
)

// Mutates reports whether the operation changes the store; such an operation
// fails on a read-only one. Abort ends what a writer began and is not counted.
func (k Kind) Mutates() bool {
	switch k {
	case Create, Write, Commit, CreateIfAbsent, Overwrite, Delete, Sync:
		return true
	}
	return false
}

// Op is one operation.
type Op struct {
	Index int // from 0, over all operations of the FS
	Kind  Kind
	Name  string // as the caller gave it; of Sync, the names joined with spaces
}

func (o Op) String() string { return fmt.Sprintf("%d %s %s", o.Index, o.Kind, o.Name) }

// Action is what happens to an operation.
type Action int

// The actions; the table is in the package comment.
const (
	Pass Action = iota
	Fail
	FailAfter
	Short
	Hang
)

// Decision is the fate of one operation. Err is what Fail and FailAfter report;
// nil means ErrInjected.
type Decision struct {
	Action Action
	Err    error
}

// ErrInjected is the cause of a failure that was asked for without a cause.
var ErrInjected = errors.New("injected fault")

// Rule applies Do to the operations it selects: of those whose kind and name
// match, number At, or number At and all later ones.
type Rule struct {
	Kinds  []Kind                 // nil selects every kind
	Match  func(name string) bool // nil selects every name
	At     int                    // among the matching operations, from 0
	Onward bool
	Do     Decision
}

func (r Rule) selects(op Op) bool {
	return (r.Kinds == nil || slices.Contains(r.Kinds, op.Kind)) && (r.Match == nil || r.Match(op.Name))
}

// Plan decides about operations: ReadOnly first, then Hook, then the Rules in
// order; the first answer other than Pass counts. The zero value passes all.
type Plan struct {
	ReadOnly bool // mutating operations fail with EROFS
	Hook     func(op Op) Decision
	Rules    []Rule
	// Capabilities, when set, are declared in place of the wrapped store's.
	Capabilities *fs.Capabilities
}

// FailOnce fails operation k, before its effect.
func FailOnce(k int) Plan { return Plan{Rules: []Rule{{At: k, Do: Decision{Action: Fail}}}} }

// FailFrom fails operation k and every later one: a dead disk.
func FailFrom(k int) Plan {
	return Plan{Rules: []Rule{{At: k, Onward: true, Do: Decision{Action: Fail}}}}
}

// LostReply lets operation k take effect and reports an error.
func LostReply(k int) Plan { return Plan{Rules: []Rule{{At: k, Do: Decision{Action: FailAfter}}}} }

// NoSpaceFrom finds the device full from the k-th operation that takes space.
func NoSpaceFrom(k int) Plan {
	return Plan{Rules: []Rule{{
		Kinds: []Kind{Create, Write, Commit, CreateIfAbsent, Overwrite}, At: k, Onward: true,
		Do: Decision{Action: Fail, Err: syscall.ENOSPC},
	}}}
}

// ShortOnce halves operation k.
func ShortOnce(k int) Plan { return Plan{Rules: []Rule{{At: k, Do: Decision{Action: Short}}}} }

// ReadOnly refuses everything that changes the store.
func ReadOnly() Plan { return Plan{ReadOnly: true} }
