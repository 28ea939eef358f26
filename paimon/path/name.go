package path

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// MaxComponent is the longest file or directory name in bytes that common file
// systems take.
const MaxComponent = 255

// CheckName accepts a file name that is one clean component: not empty, not "."
// or "..", no separator, backslash, colon (schemes, drives) or control
// character, UTF-8, at most MaxComponent bytes. It returns ErrInvalid; a caller
// that found the name in a file of the table reports that file as corrupt.
func CheckName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return errs.Invalid("%q is not a file name", name)
	case len(name) > MaxComponent:
		return errs.Invalid("file name of %d bytes, at most %d are possible", len(name), MaxComponent)
	case !utf8.ValidString(name):
		return errs.Invalid("file name %q is not UTF-8", name)
	}
	for _, r := range name {
		if r < 0x20 || r == 0x7f || r == '/' || r == '\\' || r == ':' {
			return errs.Invalid("file name %q contains %q", name, r)
		}
	}
	return nil
}

// codecSuffix are the extensions that stand between a name and its format when
// file.suffix.include.compression is on, by codec.
var codecSuffix = map[string]string{
	"zstd": "zst", "gzip": "gz", "lz4": "lz4", "lz4_raw": "lz4", "snappy": "snappy", "bzip2": "bz2",
	"deflate": "deflate",
}

// Format is the format identifier of a data file, "parquet", "orc" or "avro" for
// instance, from its name alone: the options may have changed since it was
// written. It is "" when the name has no extension.
func Format(fileName string) string {
	rest, ext := cutLast(fileName)
	switch ext {
	case "gz", "bz2", "deflate", "snappy", "lz4", "zst":
		_, ext = cutLast(rest)
	}
	return ext
}

// cutLast splits at the last dot; ext is "" when there is none.
func cutLast(name string) (rest, ext string) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// NewDataFile is the name of the counter-th file, from 0, of a writer that took a
// random lower-case uuid for itself.
func NewDataFile(o schema.Options, uuid string, counter int) string {
	name := o.DataFilePrefix + uuid + "-" + strconv.Itoa(counter)
	if suffix, ok := codecSuffix[o.Compression]; ok && o.FileSuffixCompression {
		name += "." + suffix
	}
	return name + "." + o.FileFormat
}
