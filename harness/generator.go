package harness

import (
	"fmt"

	"github.com/tideline-db/tideline"
)

// Keys is a distribution of keys.
type Keys string

// The distributions. New keys are numbered 0, 1, ...; a distribution says which
// number an update takes and which key a number is.
const (
	KeysRandom Keys = "random" // updates uniform; key Mix(number)>>1
	KeysZipf   Keys = "zipf"   // updates zipfian with exponent 0.99, scrambled; key Mix(number)>>1
	KeysAppend Keys = "append" // updates uniform; the key is the number, so new keys only increase
	KeysHot    Keys = "hot"    // 90 % of updates in the newest 1 %; key Mix(number)>>1
)

// hotShare is the part of the keys, as a divisor, that KeysHot prefers.
const hotShare = 100

// Profile says which keys a load touches, and how.
type Profile struct {
	Seed    uint64
	Keys    Keys
	Updates float64 // share of rows that overwrite an earlier key, [0, 1]
	Deletes float64 // share of rows that delete an earlier key; Updates+Deletes <= 1
}

// Check refuses a profile that cannot be drawn from.
func (p Profile) Check() error {
	switch p.Keys {
	case KeysRandom, KeysZipf, KeysAppend, KeysHot:
	default:
		return fmt.Errorf("unknown key distribution %q: want random, zipf, append or hot", p.Keys)
	}
	if !(p.Updates >= 0 && p.Deletes >= 0 && p.Updates+p.Deletes <= 1) {
		return fmt.Errorf("updates %v and deletes %v: want shares that are not negative and together at most 1", p.Updates, p.Deletes)
	}
	return nil
}

// Generator draws the key number and the kind of row after row. It is a value: a
// copy continues on its own from where the original stands.
//
//	u = Mix(seed + 2i) mod 1000:   0 ... updates | ... deletes | ... 1000
//	                               earlier key   | earlier key | new key
//
// Which earlier key is drawn from Mix(seed + 2i + 1).
type Generator struct {
	profile  Profile
	row      uint64
	distinct uint64
	update   uint64 // u below: an update
	touch    uint64 // u below: an update or a delete
}

// NewGenerator starts at row 0. The profile must pass Check.
func NewGenerator(p Profile) Generator {
	return Generator{profile: p, update: uint64(1000*p.Updates + 0.5), touch: uint64(1000*(p.Updates+p.Deletes) + 0.5)}
}

// Row is the number of the next row.
func (g *Generator) Row() uint64 { return g.row }

// Distinct is the number of keys that were drawn so far, deleted ones included.
func (g *Generator) Distinct() uint64 { return g.distinct }

// Skip moves on by n rows, much faster than drawing them.
func (g *Generator) Skip(n int) {
	for range n {
		if g.distinct == 0 || Mix(g.profile.Seed+2*g.row)%1000 >= g.touch {
			g.distinct++
		}
		g.row++
	}
}

// Next draws one row: the number of its key and what it does to it.
func (g *Generator) Next() (number uint64, kind tideline.RowKind) {
	u := Mix(g.profile.Seed+2*g.row) % 1000
	x := Mix(g.profile.Seed + 2*g.row + 1)
	g.row++
	if g.distinct == 0 || u >= g.touch {
		g.distinct++
		return g.distinct - 1, tideline.Insert
	}
	kind = tideline.UpdateAfter
	if u >= g.update {
		kind = tideline.Delete
	}
	return g.earlier(x), kind
}

// earlier picks one of the keys drawn before.
func (g *Generator) earlier(x uint64) uint64 {
	d := g.distinct
	switch g.profile.Keys {
	case KeysZipf:
		return Mix(zipfRank(x, d)) % d
	case KeysHot:
		if hot := max(1, d/hotShare); x%10 < 9 {
			return d - 1 - x/10%hot
		}
		return x / 10 % d
	default:
		return x % d
	}
}

// key maps a key number to 63 bits.
func (k Keys) key(number uint64) uint64 {
	if k == KeysAppend {
		return number
	}
	return Mix(number) >> 1
}
