//go:build !unix

package harness

// peakResident is not known on this system.
func peakResident() int64 { return 0 }
