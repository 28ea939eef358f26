package datafile

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	poolMinClass = 12 // 4 KiB: smaller buffers are cheaper made than kept
	poolMaxClass = 28 // 256 MiB: larger ones go back to the heap
)

// Pool is an allocator that keeps freed buffers in power-of-two classes instead
// of giving them to the garbage collector. Memory is not cleared. A buffer comes
// back when the last holder releases it, so readers that release their batches
// scan in constant memory; what nobody uses between two garbage collections is
// dropped. A Pool is safe for concurrent use; the zero value is ready.
//
// Holders that never release cost nothing: their buffers are ordinary garbage.
type Pool struct {
	classes [poolMaxClass + 1]sync.Pool
}

var _ memory.Allocator = (*Pool)(nil)

// Allocate returns size bytes of unspecified content.
func (p *Pool) Allocate(size int) []byte {
	class := poolClass(size)
	if class < 0 {
		return memory.DefaultAllocator.Allocate(size)
	}
	if b, ok := p.classes[class].Get().(*byte); ok {
		return unsafe.Slice(b, 1<<class)[:size]
	}
	return memory.DefaultAllocator.Allocate(1 << class)[:size]
}

// Reallocate resizes a buffer and keeps the content up to the smaller size.
func (p *Pool) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	next := p.Allocate(size)
	copy(next, b)
	p.Free(b)
	return next
}

// Free keeps the buffer for the next Allocate of its class.
func (p *Pool) Free(b []byte) {
	class := poolClass(cap(b))
	if class < 0 || cap(b) != 1<<class {
		return
	}
	p.classes[class].Put(unsafe.SliceData(b[:cap(b)]))
}

// poolClass is the exponent of the smallest class that holds size, -1 for sizes
// that are not pooled.
func poolClass(size int) int {
	if size < 1<<poolMinClass || size > 1<<poolMaxClass {
		return -1
	}
	return bits.Len(uint(size - 1))
}
