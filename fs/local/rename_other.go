//go:build !linux && !darwin

package local

import "syscall"

// renameNoReplace has no counterpart here; hard links are the only way.
func renameNoReplace(_, _ string) error { return syscall.ENOSYS }
