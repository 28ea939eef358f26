package row

// Value is one scalar as it stands in keys, partitions and statistics. nil is
// SQL NULL. The Go type follows the Paimon type:
//
//	BOOLEAN bool           TINYINT int8      SMALLINT int16
//	INT, DATE (days), TIME (ms of day)       int32
//	BIGINT int64           FLOAT float32     DOUBLE float64
//	CHAR, VARCHAR string   BINARY, VARBINARY []byte
//	DECIMAL decimal128.Num (arrow-go, unscaled)
//	TIMESTAMP, TIMESTAMP_LTZ Timestamp
type Value = any

// Timestamp is an instant (or local date-time) as the format stores it:
// milliseconds rounded down, and the nanoseconds above them, 0..999999.
type Timestamp struct {
	Millis int64
	Nanos  int32
}
