package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline"
)

// Git is the first-parent history of a repository as a stream of changes: the
// table is the tree, the key is the path. A rename is a delete and an insert.
type Git struct {
	dir     string
	batch   int
	buckets int
	changes []gitChange
	sizes   map[string]int64 // by blob; submodules and missing objects have none
}

type gitChange struct {
	kind             tideline.RowKind
	path, mode, blob string // of the file, the removed one of a delete
	commit           string
	firstOfCommit    bool
}

var gitSchema = arrow.NewSchema([]arrow.Field{
	{Name: "path", Type: arrow.BinaryTypes.String},
	{Name: "blob", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "mode", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "size", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "commit", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// OpenGit reads the history of HEAD, oldest commit first. A shallow repository
// begins with the tree of its oldest commit.
func OpenGit(dir string, batch, buckets int) (*Git, error) {
	g := &Git{dir: dir, batch: max(1, batch), buckets: max(1, buckets)}
	if _, err := g.git(nil, "rev-parse", "--git-dir"); err != nil {
		return nil, fmt.Errorf("%s is no git repository: %w", dir, err)
	}
	if _, err := g.git(nil, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return nil, fmt.Errorf("the repository %s has no commits, so there is no history to write", dir)
	}
	out, err := g.git(nil, "-c", "log.showRoot=true", "log", "--first-parent", "-m", "--reverse", "--raw", "--no-renames",
		"--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "-z", "--format=%H", "HEAD", "--")
	if err != nil {
		return nil, err
	}
	if err := g.parse(out); err != nil {
		return nil, err
	}
	if len(g.changes) == 0 {
		return nil, fmt.Errorf("the commits of repository %s change no file, so there is no history to write", dir)
	}
	blobs := make([]string, len(g.changes))
	for i, c := range g.changes {
		blobs[i] = c.blob
	}
	g.sizes, err = g.sizesOf(blobs)
	return g, err
}

// git runs a command and returns what it prints.
func (g *Git) git(input []byte, args ...string) ([]byte, error) {
	c := exec.Command("git", append([]string{"-C", g.dir, "-c", "core.quotePath=false", "-c", "safe.bareRepository=all"}, args...)...)
	c.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C")
	c.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
		}
		return nil, fmt.Errorf("git cannot be run: %w", err)
	}
	return out, nil
}

// parse reads the output of git log --raw -z:
//
//	<commit> NUL [LF] :<mode> <mode> <blob> <blob> <status> NUL <path> NUL ... NUL <commit> ...
func (g *Git) parse(out []byte) error {
	commit, first := "", true
	for rest := string(out); rest != ""; {
		var field string
		field, rest, _ = strings.Cut(rest, "\x00")
		field = strings.TrimLeft(field, "\n")
		if field == "" {
			continue
		}
		if field[0] != ':' {
			commit, first = field, true
			continue
		}
		parts := strings.Fields(field[1:])
		if len(parts) != 5 || commit == "" {
			return fmt.Errorf("git log of %s: cannot read %q", g.dir, field)
		}
		c := gitChange{mode: parts[1], blob: parts[3], commit: commit, firstOfCommit: first}
		first = false
		c.path, rest, _ = strings.Cut(rest, "\x00")
		c.path = pathText(c.path)
		switch parts[4][0] {
		case 'A':
			c.kind = tideline.Insert
		case 'M', 'T':
			c.kind = tideline.UpdateAfter
		case 'D':
			c.kind, c.mode, c.blob = tideline.Delete, parts[0], parts[2]
		default:
			return fmt.Errorf("git log of %s: commit %s has a change of an unknown kind %q", g.dir, commit, parts[4])
		}
		g.changes = append(g.changes, c)
	}
	return nil
}

// pathText is a path as text; one that is no UTF-8 is quoted.
func pathText(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.Quote(path)
}

// sizesOf asks for the sizes of blobs. What is not there has no size.
func (g *Git) sizesOf(blobs []string) (map[string]int64, error) {
	sizes := map[string]int64{}
	var ask bytes.Buffer
	asked := map[string]bool{}
	for _, blob := range blobs {
		if !asked[blob] {
			asked[blob] = true
			ask.WriteString(blob + "\n")
		}
	}
	out, err := g.git(ask.Bytes(), "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		parts := strings.Fields(lines.Text())
		if len(parts) != 3 || parts[1] != "blob" {
			continue
		}
		size, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("git cat-file of %s: cannot read %q", g.dir, lines.Text())
		}
		sizes[parts[0]] = size
	}
	return sizes, lines.Err()
}

// Name is the table's name.
func (g *Git) Name() string { return "git" }

// Definition is the table to create.
func (g *Git) Definition() tideline.Definition {
	return tideline.Definition{Columns: gitSchema, PrimaryKey: []string{"path"}, Options: map[string]string{"bucket": strconv.Itoa(g.buckets)}}
}

// Rows is the number of changes.
func (g *Git) Rows() int64 { return int64(len(g.changes)) }

// Feed starts at the oldest commit.
func (g *Git) Feed() (Feed, error) { return &gitFeed{git: g}, nil }

type gitFeed struct {
	git *Git
	at  int
}

// Next takes whole commits until there are enough rows.
func (f *gitFeed) Next() (Job, error) {
	from := f.at
	for f.at < len(f.git.changes) && (f.at-from < f.git.batch || !f.git.changes[f.at].firstOfCommit) {
		f.at++
	}
	if f.at == from {
		return nil, nil
	}
	changes := f.git.changes[from:f.at]
	return func() (*Batch, error) { return f.git.make(changes), nil }, nil
}

func (f *gitFeed) Close() error { return nil }

func (g *Git) make(changes []gitChange) *Batch {
	r := array.NewRecordBuilder(memory.DefaultAllocator, gitSchema)
	defer r.Release()
	b := &Batch{}
	for _, c := range changes {
		r.Field(0).(*array.StringBuilder).Append(c.path)
		r.Field(1).(*array.StringBuilder).Append(c.blob)
		r.Field(2).(*array.StringBuilder).Append(c.mode)
		if size, known := g.sizes[c.blob]; known {
			r.Field(3).(*array.Int64Builder).Append(size)
		} else {
			r.Field(3).AppendNull()
		}
		r.Field(4).(*array.StringBuilder).Append(c.commit)
		b.Kinds = append(b.Kinds, c.kind)
	}
	b.Record = r.NewRecordBatch()
	b.watchLast("path")
	return b
}

// CheckEnd compares path, blob, mode and size with the tree of HEAD. HEAD is the
// newest commit of the history that was read, even if it moved meanwhile.
func (g *Git) CheckEnd(rows []record) (string, error) {
	head := g.changes[len(g.changes)-1].commit
	out, err := g.git(nil, "ls-tree", "-r", "-z", "--full-tree", head)
	if err != nil {
		return "", err
	}
	var tree []gitChange
	var blobs []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		about, path, _ := strings.Cut(entry, "\t")
		parts := strings.Fields(about)
		if len(parts) != 3 {
			return "", fmt.Errorf("git ls-tree of %s: cannot read %q", g.dir, entry)
		}
		tree = append(tree, gitChange{path: pathText(path), mode: parts[0], blob: parts[2]})
		blobs = append(blobs, parts[2])
	}
	sizes, err := g.sizesOf(blobs)
	if err != nil {
		return "", err
	}
	want := (&Git{sizes: sizes}).make(tree)
	defer want.Record.Release()
	if err := sameRows([]string{"blob", "mode", "size"}, "path", []record{want.Record}, rows); err != nil {
		return "", fmt.Errorf("git ls-tree of %s: %w", head, err)
	}
	return fmt.Sprintf("the end state is git ls-tree -r %s: %d files", head[:12], len(tree)), nil
}
