package messages

import (
	"github.com/tideline-db/tideline/bucket"
)

// Write appends one part of a prepared batch. Epochs arrive in order. Ack is
// called after the view that holds the rows was published.
type Write struct {
	Lease int64
	Epoch int64
	Part  *bucket.Part
	Ack   func(epoch int64)
}

// Cut seals the building segment at an epoch. With Prepare > 0 all sealed
// segments that no prepare took yet are reported under that number; the report
// is made even when there are none.
type Cut struct {
	Lease   int64
	Epoch   int64
	Prepare int64
	Ack     func(epoch int64)
	Report  func(Sealed)
}

// Reclaim drops the sealed segments that the adopted snapshot covers. It may
// come twice with the same end.
type Reclaim struct {
	CommittedEnd int64
	Done         func() // called when the bytes went back
}

// RaiseSequence lifts the sequence watermark above foreign rows.
type RaiseSequence struct {
	Sequence int64
}

// Rejoin gives the segments of an aborted prepare back: they join the next one.
type Rejoin struct {
	Segments []*bucket.Segment
}

// Consolidated is the result of a merge of runs inside one segment. Result is
// nil when Err is set. Writes is the bucket's count of writes when it began.
type Consolidated struct {
	Job    *bucket.Job
	Result *bucket.Result
	Err    error
	Writes int64
}

// Quiet comes a while after a crowded bucket was written. If its count of writes
// is still Writes, nothing came since.
type Quiet struct {
	Writes int64
}

// Describe asks for the counters of a bucket.
type Describe struct {
	Reply func(bucket.ID, bucket.Stats)
}

// Retire ends a bucket; its views stay readable. Reply is called when nothing
// more will be published.
type Retire struct {
	Reply func()
}
