package local

import "golang.org/x/sys/unix"

// renameNoReplace renames unless the new name is taken (EEXIST).
func renameNoReplace(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}
