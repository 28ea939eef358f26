package datafile

import (
	"fmt"
	"runtime"
)

// guard turns a panic of the Parquet library into an error, so that damaged
// bytes or a bug below never take the process down.
func guard(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if re, ok := r.(runtime.Error); ok {
				err = fmt.Errorf("%s: %w", what, re)
				return
			}
			err = fmt.Errorf("%s: %v", what, r)
		}
	}()
	return f()
}
