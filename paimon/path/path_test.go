package path

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLayout(t *testing.T) {
	root := Root("file:///w", "shop", "orders")
	require.Equal(t, "file:///w/shop.db/orders", root)
	require.Equal(t, root+"/snapshot/snapshot-7", Snapshot(root, "", 7))
	require.Equal(t, root+"/snapshot/LATEST", LatestHint(root, "main"))
	require.Equal(t, root+"/branch/branch-b/snapshot/EARLIEST", EarliestHint(root, "b"))
	require.Equal(t, root+"/branch/branch-b/schema/schema-0", SchemaFile(root, "b", 0))
	require.Equal(t, root+"/tag/tag-v1", Tag(root, "", "v1"))
	require.Equal(t, root+"/consumer/consumer-c", Consumer(root, "", "c"))
	require.Equal(t, root+"/manifest/manifest-x-0", Manifest(root, "manifest-x-0"))
	require.Equal(t, root+"/index/index-x-0", Index(root, "index-x-0"))

	kv := []KV{{"dt", "2025-04-14"}, {"hr", "10"}}
	require.Equal(t, root+"/dt=2025-04-14/hr=10/bucket-0", DataDir(root, schema.Options{}, kv, 0))
	require.Equal(t, root+"/data/sub/bucket-postpone/f",
		DataFile(root, schema.Options{PathDirectory: "data/sub"}, nil, PostponeBucket, "f"))
	require.Equal(t, "with space=a%2Fb/%3D=%25", PartitionDir([]string{"with space", "="}, []string{"a/b", "%"}))
	require.Empty(t, PartitionDir(nil, nil))
}

func TestIDs(t *testing.T) {
	id, ok := SnapshotID("snapshot-12")
	require.True(t, ok)
	require.Equal(t, int64(12), id)
	_, ok = SchemaID("schema-0")
	require.True(t, ok)
	for _, base := range []string{
		"snapshot-", "snapshot-012", "snapshot-+1", "snapshot--1", "snapshot-1.tmp", "LATEST", "snapshot-99999999999999999999",
	} {
		_, ok := SnapshotID(base)
		require.False(t, ok, base)
	}
}

func TestDataFileNames(t *testing.T) {
	o := schema.Options{DataFilePrefix: "data-", FileFormat: "parquet", Compression: "zstd"}
	require.Equal(t, "data-u-3.parquet", NewDataFile(o, "u", 3))
	o.FileSuffixCompression = true
	require.Equal(t, "data-u-3.zst.parquet", NewDataFile(o, "u", 3))
	o.Compression = "none"
	require.Equal(t, "data-u-3.parquet", NewDataFile(o, "u", 3))
	for name, want := range map[string]string{
		"data-1-0.parquet": "parquet", "data-1-0.zst.parquet": "parquet", "data.orc.zst": "orc", "a.avro.gz": "avro",
		"plain": "", "zst": "", "x.zst": "", "dot.": "",
	} {
		require.Equal(t, want, Format(name), name)
	}
}

func TestHostileNamesAreRefused(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", "s3:x", "file:///x", "a\x00", "a\nb", "\x7f", "\xff",
		strings.Repeat("a", 256),
	} {
		require.ErrorIs(t, CheckName(name), errs.ErrInvalid, "%q", name)
	}
	for _, name := range []string{"data-1-0.parquet", "..a", "ü", strings.Repeat("a", 255)} {
		require.NoError(t, CheckName(name))
	}
	require.NoError(t, CheckTable("shop", "orders"))
	for _, pair := range [][2]string{
		{"sys", "t"}, {"d", "t$snapshots"}, {"..", "t"}, {"", "t"}, {"d", ".."}, {"d", ""}, {"d/e", "t"}, {"d", "t "}, {"d.", "t"},
	} {
		require.ErrorIs(t, CheckTable(pair[0], pair[1]), errs.ErrInvalid, "%q", pair)
	}
}

func TestEscape(t *testing.T) {
	require.Equal(t, "%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%7D%5B%5D%5E%01%1F%7F", Escape("\"#%'*/:=?\\{}[]^\x01\x1f\x7f"))
	require.Equal(t, " <>|~+&,ü", Escape(" <>|~+&,ü"))
	require.Equal(t, "a/b%zz%", Unescape("a%2fb%zz%"))
	require.Equal(t, "%", Unescape("%25"))
	require.Equal(t, "ÿ%4", Unescape("%FF%4"))
}

func TestUnescapeReversesEscape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if got := Unescape(Escape(text)); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func typ(t testing.TB, text string) schema.Type {
	parsed, err := schema.ParseType(text)
	require.NoError(t, err)
	return parsed
}

func TestPartitionText(t *testing.T) {
	day := int64(86400_000)
	ts := func(millis int64, nanos int32) row.Timestamp { return row.Timestamp{Millis: millis, Nanos: nanos} }
	unscaled := func(text string) decimal128.Num {
		n, ok := new(big.Int).SetString(text, 10)
		require.True(t, ok)
		return decimal128.FromBigInt(n)
	}
	cases := []struct {
		typ          string
		val          row.Value
		legacy, text string
	}{
		{"STRING", "a/b", "a/b", "a/b"},
		{"STRING", nil, "DEF", "DEF"},
		{"STRING", "", "DEF", "DEF"},
		{"STRING", " \t\u2003\u001c", "DEF", "DEF"},
		{"STRING", "\u00a0", "\u00a0", "\u00a0"},
		{"CHAR(3)", "a  ", "a  ", "a  "},
		{"TINYINT", int8(-5), "-5", "-5"},
		{"SMALLINT", int16(7), "7", "7"},
		{"INT", int32(2147483647), "2147483647", "2147483647"},
		{"BIGINT", int64(1099511627776), "1099511627776", "1099511627776"},
		{"BOOLEAN", true, "true", "true"},
		{"DATE", int32(19723), "19723", "2024-01-01"},
		{"DATE", int32(-25567), "-25567", "1900-01-01"},
		{"TIMESTAMP(0)", ts(19723*day+10*3600_000, 0), "2024-01-01T10:00", "2024-01-01 10:00:00"},
		{"TIMESTAMP(3)", ts(19723*day+1000, 0), "2024-01-01T00:00:01", "2024-01-01 00:00:01.000"},
		{"TIMESTAMP(3)", ts(-1, 0), "1969-12-31T23:59:59.999", "1969-12-31 23:59:59.999"},
		{"TIMESTAMP(6)", ts(5, 7000), "1970-01-01T00:00:00.005007", "1970-01-01 00:00:00.005007"},
		{"TIMESTAMP(9)", ts(0, 1), "1970-01-01T00:00:00.000000001", "1970-01-01 00:00:00.000000001"},
		{"DECIMAL(5, 2)", unscaled("-7"), "-0.07", "-0.07"},
		{"DECIMAL(5, 0)", unscaled("-7"), "-7", "-7"},
		{"DECIMAL(38, 10)", unscaled("12345678901234567890123"), "1234567890123.4567890123", "1234567890123.4567890123"},
		{"FLOAT", float32(-63.125), "-63.125", "-63.125"},
		{"FLOAT", float32(-8.2916124e-10), "-8.2916124E-10", "-8.2916124E-10"},
		{"DOUBLE", 1e7, "1.0E7", "1.0E7"},
	}
	for _, c := range cases {
		got, err := PartitionText(typ(t, c.typ), c.val, true, "DEF")
		require.NoError(t, err)
		require.Equal(t, c.legacy, got, "%s legacy", c.typ)
		got, err = PartitionText(typ(t, c.typ), c.val, false, "DEF")
		require.NoError(t, err)
		require.Equal(t, c.text, got, "%s", c.typ)
	}
	got, err := PartitionText(typ(t, "TIMESTAMP_LTZ(3)"), ts(2071686017948000/1000*1000, 0), true, "DEF")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(got, "+"), got)
	got, err = PartitionText(typ(t, "TIME(3)"), int32(5), true, "DEF")
	require.NoError(t, err)
	require.Equal(t, "5", got)
}

func TestPartitionTextRefuses(t *testing.T) {
	for _, c := range []struct {
		typ  string
		val  row.Value
		want error
	}{
		{"STRING", "a\x00b", errs.ErrInvalid},
		{"STRING", "\xff", errs.ErrInvalid},
		{"STRING", strings.Repeat("a", 254), errs.ErrInvalid},
		{"STRING", strings.Repeat("/", 85), errs.ErrInvalid},
		{"STRING", int32(1), errs.ErrInvalid},
		{"INT", "1", errs.ErrInvalid},
		{"DOUBLE", math.NaN(), errs.ErrInvalid},
		{"FLOAT", float32(math.Inf(-1)), errs.ErrInvalid},
		{"TIMESTAMP(3)", row.Timestamp{Nanos: -1}, errs.ErrInvalid},
		{"BYTES", []byte{1}, errs.ErrUnsupported},
		{"TIME(3)", int32(5), errs.ErrUnsupported},
		{"TIMESTAMP_LTZ(3)", row.Timestamp{}, errs.ErrUnsupported},
	} {
		_, err := PartitionText(typ(t, c.typ), c.val, false, "DEF")
		require.ErrorIs(t, err, c.want, "%s %v", c.typ, c.val)
	}
	require.NoError(t, CheckPartition([]string{"k"}, []string{strings.Repeat("a", 253)}))
	require.ErrorIs(t, CheckPartition([]string{"key"}, []string{strings.Repeat("a", 253)}), errs.ErrInvalid)
	require.ErrorIs(t, CheckPartition([]string{"key"}, nil), errs.ErrInvalid)
}

// Expected texts are those of the Java API documentation and of JDK 19.
func TestJavaNumbers(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", math.Copysign(0, -1): "0.0", 1: "1.0", 0.001: "0.001", 9.999e-4: "9.999E-4", 1e7: "1.0E7",
		9999999: "9999999.0", 1e23: "1.0E23", 2e23: "2.0E23", 4.9e-324: "4.9E-324", 2e-3: "0.002",
		math.MaxFloat64: "1.7976931348623157E308", 2.2250738585072014e-308: "2.2250738585072014E-308", -1.5e-10: "-1.5E-10",
		100: "100.0", 123456.789: "123456.789",
	} {
		got, err := JavaDouble(f)
		require.NoError(t, err)
		require.Equal(t, want, strings.TrimPrefix(got, map[bool]string{true: "-"}[f == 0]))
	}
	got, err := JavaDouble(math.Copysign(0, -1))
	require.NoError(t, err)
	require.Equal(t, "-0.0", got)
	for f, want := range map[float32]string{
		1.4e-45: "1.4E-45", math.MaxFloat32: "3.4028235E38", 1.17549435e-38: "1.1754944E-38", 1e10: "1.0E10",
		0.1: "0.1", 16777216: "1.6777216E7", 8388608: "8388608.0", 0.001: "0.001",
	} {
		got, err := JavaFloat(f)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{"", "a%2Fb", "%", "%4", "%zz", "%00", "k=v", "%FF"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plain := Unescape(text)
		if len(plain) > len(text) {
			t.Fatalf("%q grew to %q", text, plain)
		}
		if again := Unescape(Escape(plain)); again != plain {
			t.Fatalf("%q became %q", plain, again)
		}
	})
}
