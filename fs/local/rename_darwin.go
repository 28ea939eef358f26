package local

import "golang.org/x/sys/unix"

// renameNoReplace renames unless the new name is taken (EEXIST).
func renameNoReplace(from, to string) error {
	return unix.RenamexNp(from, to, unix.RENAME_EXCL)
}
