package path

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Every data file of every golden table lies where DataFile says, computed from
// the partition value that its manifest gives.
func TestGoldenFilesAreWhereTheyShouldBe(t *testing.T) {
	tables, err := filepath.Glob(filepath.Join(golden.Dir(t), "*", "expected", "files.jsonl"))
	require.NoError(t, err)
	found, kinds := 0, map[schema.Kind]int{}
	for _, list := range tables {
		root := filepath.Join(filepath.Dir(filepath.Dir(list)), "table")
		data, err := os.ReadFile(list)
		require.NoError(t, err)
		schemas := map[int64]*schema.Schema{}
		for scan := bufio.NewScanner(bytes.NewReader(data)); scan.Scan(); {
			var f struct {
				Partition map[string]json.RawMessage
				Bucket    int
				File      string
				External  bool
				SchemaID  int64
			}
			dec := json.NewDecoder(bytes.NewReader(scan.Bytes()))
			dec.UseNumber()
			require.NoError(t, dec.Decode(&f))
			if f.External {
				continue
			}
			s := schemas[f.SchemaID]
			if s == nil {
				name := filepath.Join(root, "schema", "schema-"+strconv.FormatInt(f.SchemaID, 10))
				text, err := os.ReadFile(name)
				if os.IsNotExist(err) {
					continue // the schema of a branch
				}
				require.NoError(t, err)
				s, err = schema.Parse(text, name)
				require.NoError(t, err)
				schemas[f.SchemaID] = s
			}
			o, err := schema.ParseOptions(s)
			require.NoError(t, err)
			var kv []KV
			for _, i := range s.PartitionIndexes() {
				field := s.Fields[i]
				raw, ok := f.Partition[field.Name]
				require.True(t, ok)
				text, err := PartitionText(field.Type, goldenValue(t, field.Type, string(raw)), o.PartitionLegacyName,
					o.PartitionDefaultName)
				require.NoError(t, err)
				kv = append(kv, KV{field.Name, text})
				kinds[field.Type.Kind]++
			}
			_, err = os.Stat(DataFile(root, o, kv, f.Bucket, f.File))
			require.NoError(t, err, "%s %s", list, scan.Text())
			found++
		}
	}
	require.Greater(t, found, 1000)
	for _, kind := range []schema.Kind{schema.VarChar, schema.Int, schema.Date, schema.TimestampLTZ, schema.Float} {
		require.Positive(t, kinds[kind], "%s", kind)
	}
	t.Log(found, kinds)
}

// goldenValue turns a JSON value, written as the index of the tables says, into a
// row value.
func goldenValue(t *testing.T, typ schema.Type, raw string) row.Value {
	if raw == "null" {
		return nil
	}
	text := raw
	if strings.HasPrefix(raw, `"`) {
		require.NoError(t, json.Unmarshal([]byte(raw), &text))
	}
	number := func(bits int) int64 {
		n, err := strconv.ParseInt(text, 10, bits)
		require.NoError(t, err)
		return n
	}
	switch typ.Kind {
	case schema.Boolean:
		return text == "true"
	case schema.TinyInt:
		return int8(number(8))
	case schema.SmallInt:
		return int16(number(16))
	case schema.Int:
		return int32(number(32))
	case schema.BigInt:
		return number(64)
	case schema.Float:
		f, err := strconv.ParseFloat(text, 32)
		require.NoError(t, err)
		return float32(f)
	case schema.Double:
		f, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return f
	case schema.Decimal:
		n, err := decimal128.FromString(text, int32(typ.Prec), int32(typ.Scale))
		require.NoError(t, err)
		return n
	case schema.Date:
		d, err := time.Parse(time.DateOnly, text)
		require.NoError(t, err)
		return int32(d.Unix() / 86400)
	case schema.Timestamp, schema.TimestampLTZ:
		ts, err := time.Parse("2006-01-02 15:04:05", strings.TrimSuffix(text, "Z"))
		require.NoError(t, err)
		return row.Timestamp{Millis: ts.UnixMilli(), Nanos: int32(ts.Nanosecond() % 1_000_000)}
	}
	return text
}
