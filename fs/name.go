package fs

import (
	"path"
	"strings"

	"github.com/tideline-db/tideline/internal/errs"
)

// Join joins name elements with slashes and cleans the result. A scheme in front
// of the first element is kept: Join("file:///w", "a") is "file:///w/a".
// It resolves "..", so elements that come from a table must have been checked to
// be clean single components before.
func Join(elem ...string) string {
	for i, e := range elem {
		if e == "" {
			continue
		}
		scheme, rest := splitScheme(e)
		parts := append([]string{rest}, elem[i+1:]...)
		return scheme + path.Join(parts...)
	}
	return ""
}

// Base returns the last component of a name.
func Base(name string) string {
	_, rest := splitScheme(name)
	return path.Base(rest)
}

// Dir returns the directory of a name, with its scheme. The directory of a
// store's root ("s3://bucket", "file:///") is the root itself.
func Dir(name string) string {
	scheme, rest := splitScheme(name)
	if strings.HasSuffix(scheme, "://") && rest != "" && !strings.Contains(strings.Trim(rest, "/"), "/") &&
		!strings.HasPrefix(rest, "/") {
		return scheme + path.Clean(rest)
	}
	return scheme + path.Dir(rest)
}

// IsTemp reports whether a base name is that of a file not yet published.
func IsTemp(base string) bool {
	return strings.HasPrefix(base, ".") && strings.HasSuffix(base, ".tmp")
}

// LocalPath strips the spellings "file:" and "file://" and cleans what is left.
// Percent signs are taken literally, as Paimon writes them. A name that is empty,
// holds a NUL byte, or belongs to another store or machine is refused.
func LocalPath(name string) (string, error) {
	scheme, rest := splitScheme(name)
	switch {
	case name == "" || strings.IndexByte(name, 0) >= 0:
		return "", errs.Invalid("file name %q is empty or holds a NUL byte", name)
	case scheme == "" || scheme == "file:":
	case scheme == "file://":
		if host, tail, _ := strings.Cut(rest, "/"); host == "localhost" {
			rest = "/" + tail
		} else if host != "" {
			return "", errs.Unsupported("file name %q: files of machine %q cannot be reached through a file scheme", name, host)
		}
	default:
		return "", errs.Unsupported("file name %q: no store for scheme %q here", name, strings.TrimSuffix(scheme, "://"))
	}
	if rest == "" {
		return "", errs.Invalid("file name %q holds no path", name)
	}
	return path.Clean(rest), nil
}

// splitScheme cuts "scheme://" or "file:" off a name. A colon elsewhere belongs
// to the name: partition values may hold one.
func splitScheme(name string) (scheme, rest string) {
	if i := strings.Index(name, "://"); i > 0 && isScheme(name[:i]) {
		return name[:i+3], name[i+3:]
	}
	if rest, ok := strings.CutPrefix(name, "file:"); ok {
		return "file:", rest
	}
	return "", name
}

// isScheme follows RFC 3986 section 3.1, upper case left out.
func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z'
		other := c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return s != ""
}
