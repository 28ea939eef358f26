package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tideline-db/tideline/harness"
)

// lineInterval is the pace of progress where there is no terminal.
const lineInterval = 5 * time.Second

// progress shows how far a run is: a bar on a terminal, else a line now and then.
type progress struct {
	out  io.Writer
	bar  *progressbar.ProgressBar
	tty  bool
	next time.Duration // when the next line is due
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, tty: ok && term.IsTerminal(int(file.Fd())), next: lineInterval}
}

func (p *progress) update(now harness.Progress) {
	text := fmt.Sprintf("%s: %d snapshots, %d reads verified", now.Phase, now.Snapshots, now.Reads)
	if !p.tty {
		if now.Elapsed >= p.next {
			p.next = now.Elapsed + lineInterval
			fmt.Fprintf(p.out, "%s, %d rows, %s\n", text, now.Rows, now.Elapsed.Round(time.Second))
		}
		return
	}
	if p.bar == nil {
		total := now.Total
		if total == 0 {
			total = -1
		}
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.out), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("rows"), progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
	}
	p.bar.Describe(text)
	_ = p.bar.Set64(now.Rows) // a bar that cannot be drawn stops nothing
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish() // see update
		_ = p.bar.Clear()
	}
}
