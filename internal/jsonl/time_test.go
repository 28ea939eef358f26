package jsonl

import "time"

func timeOf(day int64) time.Time { return time.Unix(day*secondsPerDay, 0).UTC() }
