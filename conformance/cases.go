package conformance

// scalarColumns holds a column of every scalar type and of the widths that take
// another encoding.
var scalarColumns = []string{
	"c_bool BOOLEAN", "c_tiny TINYINT", "c_small SMALLINT", "c_int INT", "c_big BIGINT", "c_float FLOAT", "c_double DOUBLE",
	"c_dec9 DECIMAL(9, 2)", "c_dec18 DECIMAL(18, 6)", "c_dec38 DECIMAL(38, 10)", "c_char CHAR(4)", "c_varchar VARCHAR(20)",
	"c_string STRING", "c_binary BINARY(5)", "c_varbinary VARBINARY(9)", "c_bytes BYTES", "c_date DATE", "c_time TIME(3)",
	"c_ts0 TIMESTAMP(0)", "c_ts3 TIMESTAMP(3)", "c_ts6 TIMESTAMP(6)", "c_ltz3 TIMESTAMP(3) WITH LOCAL TIME ZONE",
	"c_ltz6 TIMESTAMP(6) WITH LOCAL TIME ZONE",
}

// nanoColumns are apart because pypaimon writes them in a way that Java cannot read.
var nanoColumns = []string{"c_ts9 TIMESTAMP(9)", "c_ltz9 TIMESTAMP(9) WITH LOCAL TIME ZONE"}

var nestedColumns = []string{
	`c_array {"type":"ARRAY","element":"INT"}`,
	`c_map {"type":"MAP","key":"STRING NOT NULL","value":"BIGINT"}`,
	`c_row {"type":"ROW","fields":[{"id":0,"name":"a","type":"INT"},{"id":0,"name":"b","type":"STRING"},{"id":0,"name":"d","type":"DECIMAL(20, 3)"}]}`,
	`c_deep {"type":"ARRAY","element":{"type":"MAP","key":"INT NOT NULL","value":{"type":"ARRAY","element":"STRING"}}}`,
	`c_rows {"type":"ARRAY","element":{"type":"ROW","fields":[{"id":0,"name":"x","type":"DOUBLE"},{"id":0,"name":"y","type":"DATE"}]}}`,
}

var multisetColumns = []string{`c_bag {"type":"MULTISET","element":"STRING NOT NULL"}`}

// Cases are the tables that every engine writes and every other reads.
func Cases(seed uint64) []Case {
	with := func(first []string, more ...[]string) []string {
		out := append([]string(nil), first...)
		for _, m := range more {
			out = append(out, m...)
		}
		return out
	}
	small := []string{"a BIGINT", "b DOUBLE", "c STRING"}
	return []Case{
		Generate("pk-plain", Shape{
			Columns: with([]string{"k BIGINT NOT NULL"}, small), Primary: []string{"k"},
			Options: map[string]string{"bucket": "1"}, Commits: 4, Rows: 60, Keys: 50,
		}, seed+1),
		Generate("pk-deletes", Shape{
			Columns: with([]string{"k BIGINT NOT NULL"}, small), Primary: []string{"k"}, Deletes: true,
			Options: map[string]string{"bucket": "2"}, Commits: 5, Rows: 60, Keys: 50,
		}, seed+2),
		Generate("pk-partitioned", Shape{
			Columns: with([]string{"dt STRING NOT NULL", "day DATE NOT NULL", "k INT NOT NULL"}, small),
			Primary: []string{"k", "dt", "day"}, Partition: []string{"day", "dt"}, Deletes: true,
			Options: map[string]string{"bucket": "3"}, Commits: 3, Rows: 80, Keys: 10,
		}, seed+3),
		Generate("pk-many-key-types", Shape{
			Columns: with([]string{"k1 STRING NOT NULL", "k2 DECIMAL(12, 2) NOT NULL", "k3 TIMESTAMP(3) NOT NULL", "k4 DATE NOT NULL",
				"k5 BOOLEAN NOT NULL", "k6 BYTES NOT NULL", "k7 TINYINT NOT NULL"}, small),
			Primary: []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7"}, Deletes: true,
			Options: map[string]string{"bucket": "4"}, Commits: 3, Rows: 60, Keys: 3,
		}, seed+4),
		Generate("pk-all-types", Shape{
			Columns: with([]string{"k BIGINT NOT NULL"}, scalarColumns, nestedColumns), Primary: []string{"k"}, Deletes: true,
			Options: map[string]string{"bucket": "2"}, Commits: 3, Rows: 60, Keys: 60,
		}, seed+5),
		Generate("pk-upserts-all-types", Shape{
			Columns: with([]string{"k BIGINT NOT NULL"}, scalarColumns, nestedColumns), Primary: []string{"k"},
			Options: map[string]string{"bucket": "2"}, Commits: 3, Rows: 60, Keys: 60,
		}, seed+10),
		Generate("pk-bucket-key", Shape{
			Columns: with([]string{"tenant STRING NOT NULL", "k BIGINT NOT NULL"}, small), Primary: []string{"tenant", "k"},
			Options: map[string]string{"bucket": "5", "bucket-key": "tenant"}, Commits: 3, Rows: 60, Keys: 12,
		}, seed+6),
		Generate("append-all-types", Shape{
			Columns: with([]string{"id BIGINT"}, scalarColumns, nestedColumns),
			Options: map[string]string{"bucket": "2", "bucket-key": "id"}, Commits: 3, Rows: 50,
		}, seed+7),
		Generate("append-partitioned", Shape{
			Columns:   with([]string{"p INT", "region STRING", "id STRING"}, small),
			Partition: []string{"region", "p"},
			Options:   map[string]string{"bucket": "2", "bucket-key": "id"}, Commits: 3, Rows: 80,
		}, seed+8),
		Generate("append-nanos-multiset", Shape{
			Columns: with([]string{"id INT"}, nanoColumns, multisetColumns),
			Options: map[string]string{"bucket": "1", "bucket-key": "id"}, Commits: 2, Rows: 50,
		}, seed+9),
	}
}
