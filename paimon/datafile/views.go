package datafile

import "github.com/apache/arrow-go/v18/arrow"

// Typed views of byte buffers.

func asInt32s(b []byte) []int32     { return arrow.GetData[int32](b) }
func asInt64s(b []byte) []int64     { return arrow.GetData[int64](b) }
func asFloat32s(b []byte) []float32 { return arrow.GetData[float32](b) }
func asFloat64s(b []byte) []float64 { return arrow.GetData[float64](b) }
