package main

import (
	"bytes"
	"fmt"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/internal/jsonl"
)

// parseCSV reads one record of RFC 4180 from the front of buf into cells, which it
// returns extended, and says how many bytes it took; 0 when the record does not end
// in buf. A cell without quotes that is empty is NULL. Cells lie in buf unless they
// contain doubled quotes.
func parseCSV(buf []byte, atEnd bool, cells []jsonl.Cell) ([]jsonl.Cell, int, error) {
	at := 0
	for {
		var cell jsonl.Cell
		var n int
		if at < len(buf) && buf[at] == '"' {
			var ok bool
			if cell.Text, n, ok = quoted(buf[at:]); !ok {
				if atEnd {
					return cells, len(buf), errs.Invalid("a quoted cell has no end")
				}
				return cells, 0, nil
			}
		} else {
			if n = bytes.IndexAny(buf[at:], ",\n"); n < 0 {
				n = len(buf) - at
			}
			cell.Text = buf[at : at+n]
			if at+n == len(buf) || buf[at+n] == '\n' {
				cell.Text = bytes.TrimSuffix(cell.Text, []byte{'\r'})
			}
			if bytes.IndexByte(cell.Text, '"') >= 0 {
				return malformed(cells, buf, at, atEnd, "a quote stands inside a cell that does not begin with one")
			}
			cell.Null = len(cell.Text) == 0
		}
		cells = append(cells, cell)
		at += n
		if at+1 < len(buf) && buf[at] == '\r' && buf[at+1] == '\n' {
			at++
		}
		switch {
		case at == len(buf) && atEnd:
			return cells, at, nil
		case at == len(buf) || at == len(buf)-1 && buf[at] == '\r' && !atEnd:
			return cells, 0, nil
		case buf[at] == '\n':
			return cells, at + 1, nil
		case buf[at] == ',':
			at++
		case buf[at] == '\r' && at == len(buf)-1:
			return cells, len(buf), nil
		default:
			return malformed(cells, buf, at, atEnd, fmt.Sprintf("%q follows a closing quote", buf[at]))
		}
	}
}

// malformed takes the rest of the line of a record that cannot be read, once all of
// it is there.
func malformed(cells []jsonl.Cell, buf []byte, at int, atEnd bool, reason string) ([]jsonl.Cell, int, error) {
	n := bytes.IndexByte(buf[at:], '\n')
	switch {
	case n >= 0:
		return cells, at + n + 1, errs.Invalid("%s", reason)
	case atEnd:
		return cells, len(buf), errs.Invalid("%s", reason)
	}
	return cells, 0, nil
}

// quoted reads a cell in quotes; n counts them as well.
func quoted(buf []byte) (text []byte, n int, ok bool) {
	at, doubled := 1, false
	for {
		end := bytes.IndexByte(buf[at:], '"')
		if end < 0 {
			return nil, 0, false
		}
		at += end
		if at+1 < len(buf) && buf[at+1] == '"' {
			doubled = true
			at += 2
			continue
		}
		text = buf[1:at]
		if doubled {
			text = bytes.ReplaceAll(text, []byte(`""`), []byte(`"`))
		}
		return text, at + 1, true
	}
}
