package progress

import (
	"slices"
	"strings"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/path"
)

// Extensions of the files of the metadata directory.
const (
	offsetsSuffix  = ".offsets"
	positionSuffix = ".position"
)

// MetadataDir is the directory of progress files of a branch.
func MetadataDir(root, branch string) string { return fs.Join(path.Branch(root, branch), "metadata") }

// OffsetsFile is the name for a new offsets file; uuid is fresh, lower-case.
func OffsetsFile(root, branch, uuid string) string {
	return fs.Join(MetadataDir(root, branch), uuid+offsetsSuffix)
}

// PositionName is the base name for a new record file; uuid is fresh, lower-case.
func PositionName(uuid string) string { return uuid + positionSuffix }

// PositionFile is the full name of a record file by its base name, which
// ParseRecord has checked.
func PositionFile(root, branch, name string) string { return fs.Join(MetadataDir(root, branch), name) }

// IsProgressFile says whether a base name in a metadata directory is that of a
// file of this package; other engines keep other files there.
func IsProgressFile(base string) bool {
	return strings.HasSuffix(base, offsetsSuffix) || strings.HasSuffix(base, positionSuffix)
}

// Candidates are the places to look for the offsets file of the property
// realtime.offsets, in order: the metadata directory of the branch, that of the
// table, then the stored full name. Files are written once under random names, so
// whichever exists is the right one, and a table that was moved or copied finds
// its own. ErrInvalid when the stored text cannot be the name of such a file; the
// caller reports the snapshot that holds it as corrupt.
func Candidates(stored, root, branch string) ([]string, error) {
	base := stored[strings.LastIndexByte(stored, '/')+1:]
	if err := path.CheckName(base); err != nil || !strings.HasSuffix(base, offsetsSuffix) {
		return nil, errs.Invalid("%s = %q does not name an offsets file", OffsetsProperty, stored)
	}
	if strings.ContainsAny(stored, "\x00\\") || slices.Contains(strings.Split(stored, "/"), "..") {
		return nil, errs.Invalid("%s = %q is not a clean name", OffsetsProperty, stored)
	}
	out := []string{fs.Join(MetadataDir(root, branch), base)}
	for _, name := range []string{fs.Join(MetadataDir(root, path.MainBranch), base), stored} {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}
