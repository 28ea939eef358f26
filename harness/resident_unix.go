//go:build unix

package harness

import (
	"runtime"
	"syscall"
)

// peakResident is the most memory the process had resident, in bytes; 0 when it
// is not known.
func peakResident() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(usage.Maxrss) // bytes there, KiB elsewhere
	}
	return int64(usage.Maxrss) << 10
}
