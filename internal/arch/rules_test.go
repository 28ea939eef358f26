package arch

const (
	module     = "github.com/tideline-db/tideline"
	protoactor = "github.com/asynkron/protoactor-go"
)

// A pattern is a package path below the module: "." is the root, "x" is x and
// everything below it, "x/*" only what is below, "=x" is x alone, "*" is all.

// arrows is the complete table, the first matching line counts. Nothing else may
// be imported inside the module.
var arrows = []struct {
	from string
	to   []string
}{
	// Programs and measurements, above everything.
	{"bench", []string{"*"}},
	{"conformance", []string{"*"}}, // separate programs that judge the result
	{"cmd/*", []string{".", "harness", "metrics", "snapshot", "paimon/*", "fs", "internal"}},
	{"metrics", []string{".", "internal"}},
	{"harness", []string{"harness", ".", "actors", "messages", "bucket", "merge", "snapshot", "paimon/*", "fs", "internal"}},

	// The face; fs/local is the store it opens when none is given.
	{".", []string{"actors", "messages", "bucket", "merge", "snapshot", "paimon/*", "=fs", "fs/local", "internal"}},

	{"actors", []string{"actors", "messages", "bucket", "merge", "snapshot", "paimon/*", "=fs", "internal"}},
	{"messages", []string{"bucket", "merge", "snapshot", "paimon/*", "internal"}},
	{"bucket", []string{"merge", "paimon/*", "internal"}},
	{"snapshot", []string{"merge", "paimon/*", "=fs", "internal"}},
	{"merge", []string{"paimon/*", "internal"}},

	// The foundations: one another only downwards, which the compiler sees to.
	{"paimon/*", []string{"paimon/*", "=fs", "internal"}},
	{"fs/*", []string{"fs", "internal"}},
	{"=fs", []string{"internal"}},
	{"=internal/jsonl", []string{"paimon/*", "internal"}}, // values of the format as text
	{"internal", []string{"internal", "=fs"}},
}

// pure lists the packages that get clocks, randomness, goroutines and files
// handed in.
var pure = []string{"bucket", "merge", "messages", "paimon/*", "snapshot"}

// unlocked lists the packages whose state has one owner at a time: a lock there
// hides a second one.
var unlocked = []string{"messages", "bucket", "merge", "snapshot", "actors"}

// lockedFiles are the exceptions, by file, each with its reason. There is none:
// the mailbox and the runtime do with atomics and channels.
var lockedFiles = map[string]string{}

// impureImports are the packages that pure code may not import, with what lies
// below them.
var impureImports = []string{"os", "net", "syscall", "crypto/rand", "golang.org/x/sys"}

// impureNames are the functions that pure code may not name, by import path.
var impureNames = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	// Top-level functions of the generators draw from a global source; New and
	// the sources are free.
	"math/rand": {"ExpFloat64", "Float32", "Float64", "Int", "Int31", "Int31n", "Int63", "Int63n", "Intn",
		"NormFloat64", "Perm", "Read", "Seed", "Shuffle", "Uint32", "Uint64"},
	"math/rand/v2": {"ExpFloat64", "Float32", "Float64", "Int", "Int32", "Int32N", "Int64", "Int64N", "IntN",
		"N", "NormFloat64", "Perm", "Shuffle", "Uint", "Uint32", "Uint32N", "Uint64", "Uint64N", "UintN"},
	"github.com/google/uuid": {"New", "NewString", "NewRandom", "NewUUID", "NewV6", "NewV7", "NewDCEGroup", "NewDCEPerson", "NewDCESecurity"},
}

// groupNames start goroutines by a method named Go.
var groupNames = map[string][]string{"sync": {"WaitGroup"}, "golang.org/x/sync/errgroup": {"Group", "WithContext"}}

// lockNames are the names of package sync that make one goroutine wait for
// another's critical section.
var lockNames = map[string][]string{"sync": {"Mutex", "RWMutex", "Locker", "Cond", "NewCond"}}

// waitNames are what a test may not name.
var waitNames = map[string][]string{"time": {"Sleep"}}
