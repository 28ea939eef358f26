package fs

import (
	"context"
	"errors"
	"io"

	"github.com/tideline-db/tideline/internal/errs"
)

// ReadAll returns the whole content of a small file. A file of more than limit
// bytes is an errs.CorruptError and nothing is allocated for it. A file that ends
// before its declared size is io.ErrUnexpectedEOF, never a shorter result.
func ReadAll(ctx context.Context, store FileIO, name string, limit int64) ([]byte, error) {
	f, err := store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := readAll(ctx, f, name, limit)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		return nil, Fail("close", name, closeErr)
	}
	return data, err
}

func readAll(ctx context.Context, f File, name string, limit int64) ([]byte, error) {
	size := f.Size()
	if size < 0 || size > limit {
		return nil, errs.Corrupt(name, -1, "%d bytes where at most %d are expected", size, limit)
	}
	data := make([]byte, size)
	for done := 0; done < len(data); {
		if err := ctx.Err(); err != nil {
			return nil, Fail("read", name, err)
		}
		n, err := f.ReadAt(data[done:], int64(done))
		done += n
		switch {
		case done == len(data):
		case errors.Is(err, io.EOF) || err == nil && n == 0:
			return nil, Fail("read", name, io.ErrUnexpectedEOF)
		case err != nil:
			return nil, Fail("read", name, err)
		}
	}
	return data, nil
}

// WriteAll writes p completely, however little the writer takes at a time. A
// writer that takes nothing and reports no error is io.ErrShortWrite.
func WriteAll(w io.Writer, p []byte) (int, error) {
	for done := 0; done < len(p); {
		n, err := w.Write(p[done:])
		if n < 0 || n > len(p)-done {
			return done, errors.New("writer reported an impossible count")
		}
		done += n
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.ErrShortWrite
		}
	}
	return len(p), nil
}
