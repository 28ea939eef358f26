package path

import "strings"

// Escape writes the characters that Paimon keeps out of directory names as '%'
// and two upper-case hex digits. Everything else, all non-ASCII text included, is
// kept.
func Escape(text string) string {
	var b strings.Builder
	escapeTo(&b, text)
	return b.String()
}

const upperHex = "0123456789ABCDEF"

func escapeTo(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if escaped(c) {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
}

func escaped(c byte) bool {
	return c >= 0x01 && c <= 0x1f || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{}[]^", c) >= 0
}

// Unescape is the inverse of Escape. A '%' that is not followed by two hex digits
// is kept. Codes from 80 on, which Escape never writes, stand for the Unicode
// character of that number, as in Java.
func Unescape(text string) string {
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			high, low := hexDigit(text[i+1]), hexDigit(text[i+2])
			if high >= 0 && low >= 0 {
				b.WriteRune(rune(high<<4 | low))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
