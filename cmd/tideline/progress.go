package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// lineEvery is how often progress is printed where there is no terminal.
const lineEvery = 5 * time.Second

// progress counts and shows how far a load is.
type progress struct {
	out      io.Writer
	bar      *progressbar.ProgressBar // nil without a terminal
	begin    time.Time
	printed  time.Time
	rows     int64
	replayed int64
	commits  int64
	snapshot int64 // of the last commit, 0: none
	ended    bool
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func newProgress(s source, out io.Writer) *progress {
	p := &progress{out: out, begin: time.Now()}
	p.printed = p.begin
	if w, ok := out.(*lockedWriter); ok && w.terminal {
		n, bytes := s.size()
		p.bar = progressbar.NewOptions64(n, progressbar.OptionSetWriter(out), progressbar.OptionShowBytes(bytes && n >= 0),
			progressbar.OptionSetDescription("ingest"), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(true))
	}
	return p
}

func (p *progress) wrote(rows, replayed int64) {
	p.rows += rows
	p.replayed += replayed
}

func (p *progress) committed(id int64) {
	p.commits++
	p.snapshot = id
}

// at shows the place in the input.
func (p *progress) at(done int64) {
	if p.bar != nil {
		p.bar.Describe(count(p.rows, "row"))
		_ = p.bar.Set64(done) // a bar that cannot be drawn stops nothing
		return
	}
	if now := time.Now(); now.Sub(p.printed) >= lineEvery {
		p.printed = now
		fmt.Fprintln(p.out, p)
	}
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil && !p.ended {
		_ = p.bar.Finish()
	}
	p.ended = true
}

// String is the report.
func (p *progress) String() string {
	took := time.Since(p.begin)
	text := fmt.Sprintf("%s written in %s (%.0f rows/s), %s", count(p.rows, "row"), took.Round(time.Millisecond),
		float64(p.rows)/max(took.Seconds(), 1e-9), count(p.commits, "commit"))
	if p.snapshot > 0 {
		text += fmt.Sprintf(", last snapshot %d", p.snapshot)
	}
	if p.replayed > 0 {
		text += fmt.Sprintf("; %s skipped, below the committed offsets", count(p.replayed, "row"))
	}
	return text
}
