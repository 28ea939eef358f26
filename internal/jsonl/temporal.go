package jsonl

import "strconv"

// floorDiv divides rounding down, so that the rest is never negative.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

const (
	daysPerEra    = 146097 // 400 years
	daysToEra     = 719468 // from 0000-03-01 to the epoch
	secondsPerDay = 86400
	maxPaddedYear = 9999
)

// civil is the proleptic Gregorian date of a day number. Years are counted from
// March, which puts the leap day last.
func civil(day int64) (year int64, month, dayOfMonth int) {
	era, dayOfEra := floorDiv(day+daysToEra, daysPerEra)
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*dayOfYear + 2) / 153
	dayOfMonth = int(dayOfYear - (153*shifted+2)/5 + 1)
	month = int(shifted) + 3
	year = yearOfEra + era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, dayOfMonth
}

// epochDay is the day number of a date, the inverse of civil.
func epochDay(year int64, month, dayOfMonth int) int64 {
	shifted := int64(month) - 3
	if month <= 2 {
		year, shifted = year-1, shifted+12
	}
	era, yearOfEra := floorDiv(year, 400)
	dayOfYear := (153*shifted+2)/5 + int64(dayOfMonth) - 1
	return era*daysPerEra + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - daysToEra
}

func daysIn(year int64, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

func appendDate(dst []byte, day int64) []byte {
	year, month, dayOfMonth := civil(day)
	if year < 0 {
		dst, year = append(dst, '-'), -year
	} else if year > maxPaddedYear {
		dst = append(dst, '+')
	}
	for pad := int64(1000); pad > year && pad > 1; pad /= 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, year, 10)
	dst = append2(append(dst, '-'), month)
	return append2(append(dst, '-'), dayOfMonth)
}

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// appendClock writes hh:mm:ss and digits of the fraction.
func appendClock(dst []byte, second, nanos int64, digits int) []byte {
	dst = append2(dst, int(second/3600))
	dst = append2(append(dst, ':'), int(second/60%60))
	dst = append2(append(dst, ':'), int(second%60))
	if digits > 0 {
		dst = append(dst, '.')
		for unit := int64(1e8); digits > 0; digits-- {
			dst = append(dst, byte('0'+nanos/unit%10))
			unit /= 10
		}
	}
	return dst
}

// appendTime writes a time of day in milliseconds.
func appendTime(dst []byte, millis int64, prec int) []byte {
	second, rest := floorDiv(millis, 1000)
	return appendClock(dst, second, rest*1e6, min(prec, 3))
}

func appendTimestamp(dst []byte, second, nanos int64, prec int) []byte {
	day, ofDay := floorDiv(second, secondsPerDay)
	return appendClock(append(appendDate(dst, day), ' '), ofDay, nanos, prec)
}

// reader takes fixed-form text apart from the front.
type reader struct {
	s  []byte
	ok bool
}

// number takes between lo and hi digits.
func (r *reader) number(lo, hi int) int64 {
	n, i := int64(0), 0
	for i < len(r.s) && i < hi && r.s[i] >= '0' && r.s[i] <= '9' {
		n = n*10 + int64(r.s[i]-'0')
		i++
	}
	if i < lo {
		r.ok = false
	}
	r.s = r.s[i:]
	return n
}

// byte takes one of the bytes of set, 0 when there is none.
func (r *reader) byte(set string) byte {
	if len(r.s) > 0 {
		for i := range len(set) {
			if r.s[0] == set[i] {
				r.s = r.s[1:]
				return set[i]
			}
		}
	}
	return 0
}

func (r *reader) need(set string) {
	if r.byte(set) == 0 {
		r.ok = false
	}
}

func (r *reader) date() (day int64) {
	sign, width := r.byte("+-"), 4
	if sign != 0 {
		width = 9
	}
	year := r.number(4, width)
	if sign == '-' {
		year = -year
	}
	r.need("-")
	month := int(r.number(2, 2))
	r.need("-")
	dayOfMonth := int(r.number(2, 2))
	if !r.ok || month < 1 || month > 12 || dayOfMonth < 1 || dayOfMonth > daysIn(year, month) {
		r.ok = false
		return 0
	}
	return epochDay(year, month, dayOfMonth)
}

// clock takes hh:mm[:ss[.fraction]]; exact is false when nanoseconds cannot hold
// the fraction.
func (r *reader) clock() (second, nanos int64, exact bool) {
	exact = true
	hour := r.number(2, 2)
	r.need(":")
	minute := r.number(2, 2)
	if r.byte(":") != 0 {
		second = r.number(2, 2)
		if r.byte(".,") != 0 {
			before := len(r.s)
			nanos = r.number(1, 9)
			for n := before - len(r.s); n < 9; n++ {
				nanos *= 10
			}
			for len(r.s) > 0 && r.s[0] >= '0' && r.s[0] <= '9' {
				exact = exact && r.s[0] == '0'
				r.s = r.s[1:]
			}
		}
	}
	if hour > 23 || minute > 59 || second > 59 {
		r.ok = false
	}
	return hour*3600 + minute*60 + second, nanos, exact
}

// zone takes an optional Z or offset and returns its seconds east of UTC.
func (r *reader) zone() int64 {
	if r.byte("Zz") != 0 || len(r.s) == 0 {
		return 0
	}
	sign := r.byte("+-")
	if sign == 0 {
		r.ok = false
		return 0
	}
	hour, minute := r.number(2, 2), int64(0)
	if r.byte(":") != 0 || len(r.s) > 0 {
		minute = r.number(2, 2)
	}
	if hour > 18 || minute > 59 {
		r.ok = false
	}
	east := hour*3600 + minute*60
	if sign == '-' {
		return -east
	}
	return east
}

func parseDate(s []byte) (day int64, ok bool) {
	r := reader{s, true}
	day = r.date()
	return day, r.ok && len(r.s) == 0
}

// parseTime reads a time of day.
func parseTime(s []byte) (second, nanos int64, exact, ok bool) {
	r := reader{s, true}
	second, nanos, exact = r.clock()
	return second, nanos, exact, r.ok && len(r.s) == 0
}

// parseTimestamp reads a date with an optional time and zone into seconds since
// the epoch in UTC.
func parseTimestamp(s []byte) (second, nanos int64, exact, ok bool) {
	r := reader{s, true}
	day := r.date()
	exact = true
	var ofDay, east int64
	if len(r.s) > 0 {
		r.need(" Tt")
		ofDay, nanos, exact = r.clock()
		if r.byte(" ") != 0 && len(r.s) == 0 {
			r.ok = false
		}
		east = r.zone()
	}
	return day*secondsPerDay + ofDay - east, nanos, exact, r.ok && len(r.s) == 0
}
