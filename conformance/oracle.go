package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// commandTimeout bounds one command of an oracle; a hanging process is killed so
// that a test run ends.
const commandTimeout = 2 * time.Minute

// stderrMax is how much of an oracle's standard error is kept for messages.
const stderrMax = 8 << 10

// Refusal is the answer of an oracle that could not carry out a command. The
// process lives on.
type Refusal struct {
	Oracle  string
	Command []string
	Text    string // exception classes and messages, one line
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s refused %s: %s", r.Oracle, strings.Join(r.Command, " "), r.Text)
}

// Oracle is one running process of another implementation. It serves one caller at
// a time.
type Oracle struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
	broken error // why no further command can be sent
}

// Home is the folder that install.sh fills: $CONFORMANCE_HOME, else .conformance
// beside the go.mod above the working directory.
func Home() (string, error) {
	if h := os.Getenv("CONFORMANCE_HOME"); h != "" {
		return h, nil
	}
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, ".conformance"), nil
}

func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

// StartJava starts Java Paimon in serve mode. install.sh must have run.
func StartJava() (*Oracle, error) {
	home, err := Home()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(home, "classes") + string(filepath.ListSeparator) + filepath.Join(home, "lib", "*")
	if _, err := os.Stat(filepath.Join(home, "classes", "Oracle.class")); err != nil {
		return nil, fmt.Errorf("java oracle is not installed, run conformance/install.sh: %w", err)
	}
	// The zone is fixed because ORC keeps local-zoned timestamps in the zone of the JVM.
	return start("java", "java", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-Xmx1g",
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", path, "Oracle", "serve")
}

// StartPython starts pypaimon in serve mode. install.sh must have run.
func StartPython() (*Oracle, error) {
	home, err := Home()
	if err != nil {
		return nil, err
	}
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	python := filepath.Join(home, "venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return nil, fmt.Errorf("pypaimon oracle is not installed, run conformance/install.sh: %w", err)
	}
	return start("python", python, filepath.Join(root, "conformance", "pypaimon_oracle.py"), "serve")
}

func start(name, program string, args ...string) (*Oracle, error) {
	o := &Oracle{name: name, cmd: exec.Command(program, args...), stderr: &tail{}}
	o.cmd.Env = append(os.Environ(), "TZ=UTC", "PYTHONDONTWRITEBYTECODE=1")
	o.cmd.Stderr = o.stderr
	in, err := o.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.in, o.out = in, bufio.NewReaderSize(out, 1<<20)
	if err := o.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s oracle: %w", name, err)
	}
	return o, nil
}

// Name is "java" or "python".
func (o *Oracle) Name() string { return o.name }

// Do sends one command and returns the rows it printed and the text of its "ok". A
// *Refusal is the oracle's own no; any other error means that the process is gone.
func (o *Oracle) Do(args ...string) (rows []string, text string, err error) {
	if o.broken != nil {
		return nil, "", o.broken
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = o.cmd.Process.Kill() })
	defer stop()

	line, err := json.Marshal(args)
	if err != nil {
		return nil, "", err
	}
	if _, err := o.in.Write(append(line, '\n')); err != nil {
		return nil, "", o.lost(args, err)
	}
	for {
		line, err := o.out.ReadString('\n')
		if err != nil {
			return nil, "", o.lost(args, err)
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "{"):
			rows = append(rows, line)
		case line == "ok" || strings.HasPrefix(line, "ok "):
			return rows, strings.TrimPrefix(strings.TrimPrefix(line, "ok"), " "), nil
		case strings.HasPrefix(line, "err "):
			return nil, "", &Refusal{Oracle: o.name, Command: args, Text: line[len("err "):]}
		default:
			return nil, "", o.lost(args, fmt.Errorf("unexpected line %q", line))
		}
	}
}

func (o *Oracle) lost(args []string, err error) error {
	o.broken = fmt.Errorf("%s oracle lost during %v: %w; its last words: %s", o.name, args, err, o.stderr)
	_ = o.cmd.Process.Kill()
	return o.broken
}

// Dump returns the visible rows of a table, the newest snapshot when snapshot is 0.
func (o *Oracle) Dump(warehouse, table string, snapshot int64) ([]string, error) {
	args := []string{"dump", "--warehouse", warehouse, "--table", table}
	if snapshot > 0 {
		args = append(args, "--snapshot", strconv.FormatInt(snapshot, 10))
	}
	rows, _, err := o.Do(args...)
	return rows, err
}

// Find returns the rows whose column has a value (a JSON text), with the filter
// pushed down (Java only): statistics and bucket numbers decide what is read.
func (o *Oracle) Find(warehouse, table, column, value string) ([]string, error) {
	rows, _, err := o.Do("dump", "--warehouse", warehouse, "--table", table,
		"--where", fmt.Sprintf("{%s:%s}", text(column), value))
	return rows, err
}

// Create makes an empty table.
func (o *Oracle) Create(warehouse, table string, s Schema) error {
	file, err := tempFile("schema", s.JSON())
	if err != nil {
		return err
	}
	defer os.Remove(file)
	_, _, err = o.Do("create", "--warehouse", warehouse, "--table", table, "--schema", file)
	return err
}

// Write commits rows in their order and returns the id of the newest snapshot.
func (o *Oracle) Write(warehouse, table string, rows []Row) (int64, error) {
	return o.withRows("write", warehouse, table, rows)
}

// Overwrite replaces the whole table, or the partition given as name-to-text pairs
// when it is not empty.
func (o *Oracle) Overwrite(warehouse, table string, rows []Row, partition map[string]string) (int64, error) {
	if len(partition) == 0 {
		return o.withRows("overwrite", warehouse, table, rows)
	}
	p, err := json.Marshal(partition)
	if err != nil {
		return 0, err
	}
	return o.withRows("overwrite", warehouse, table, rows, "--partition", string(p))
}

// Prepare writes data files and publishes nothing; Publish(name) commits them.
func (o *Oracle) Prepare(warehouse, table, name string, rows []Row) error {
	_, err := o.withRows("prepare", warehouse, table, rows, "--name", name)
	return err
}

// Publish commits what Prepare left under a name and returns the newest snapshot id.
func (o *Oracle) Publish(name string) (int64, error) {
	_, text, err := o.Do("publish", "--name", name)
	return snapshotID(text, err)
}

// Compact runs a full compaction (Java only) and returns the newest snapshot id.
func (o *Oracle) Compact(warehouse, table string) (int64, error) {
	_, text, err := o.Do("compact", "--warehouse", warehouse, "--table", table)
	return snapshotID(text, err)
}

// Rollback makes an older snapshot the newest one; the later ones are deleted.
func (o *Oracle) Rollback(warehouse, table string, to int64) error {
	_, _, err := o.Do("rollback", "--warehouse", warehouse, "--table", table, "--to", strconv.FormatInt(to, 10))
	return err
}

// Expire keeps the newest snapshots (Java only) and returns how many it removed.
func (o *Oracle) Expire(warehouse, table string, retain int) (int64, error) {
	_, text, err := o.Do("expire", "--warehouse", warehouse, "--table", table, "--retain", strconv.Itoa(retain))
	return snapshotID(text, err)
}

// Alter changes the schema (Java only); Oracle.java names the changes.
func (o *Oracle) Alter(warehouse, table, changes string) error {
	_, _, err := o.Do("alter", "--warehouse", warehouse, "--table", table, "--changes", changes)
	return err
}

func (o *Oracle) withRows(command, warehouse, table string, rows []Row, more ...string) (int64, error) {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.withKind())
		b.WriteByte('\n')
	}
	file, err := tempFile("rows", []byte(b.String()))
	if err != nil {
		return 0, err
	}
	defer os.Remove(file)
	args := append([]string{command, "--warehouse", warehouse, "--table", table, "--rows", file}, more...)
	_, text, err := o.Do(args...)
	return snapshotID(text, err)
}

func snapshotID(text string, err error) (int64, error) {
	if err != nil || text == "" || text == "null" {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Close ends the process and waits for it.
func (o *Oracle) Close() error {
	_ = o.in.Close() // end of input ends the serve loop
	stop := time.AfterFunc(10*time.Second, func() { _ = o.cmd.Process.Kill() })
	defer stop.Stop()
	err := o.cmd.Wait()
	if o.broken != nil {
		return nil // reported when it happened
	}
	return err
}

func tempFile(kind string, content []byte) (string, error) {
	f, err := os.CreateTemp("", "tideline-"+kind+"-*.json")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// tail keeps the end of what is written to it. The process writes while a command
// may be reading, hence the lock.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > stderrMax {
		t.b = append(t.b[:0], t.b[len(t.b)-stderrMax:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
