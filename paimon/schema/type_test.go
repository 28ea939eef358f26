package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/internal/errs"
)

func TestTypeTexts(t *testing.T) {
	for text, want := range map[string]string{
		"BOOLEAN": "", "TINYINT": "", "SMALLINT": "", "INT": "", "BIGINT NOT NULL": "", "FLOAT": "", "DOUBLE": "", "DATE": "",
		"DECIMAL(38, 10)": "", "CHAR(3) NOT NULL": "", "VARCHAR(7)": "", "STRING": "", "BINARY(2)": "", "VARBINARY(9)": "",
		"BYTES": "", "TIME(3)": "", "TIMESTAMP(9)": "", "TIMESTAMP(0) WITH LOCAL TIME ZONE NOT NULL": "", "VARIANT": "",
		"BLOB": "", "GEOMETRY(OGC:CRS84)": "", "GEOGRAPHY(OGC:CRS84, spherical)": "",
		"integer": "INT", "double precision": "DOUBLE", "NUMERIC(5)": "DECIMAL(5, 0)", "dec": "DECIMAL(10, 0)",
		" decimal ( 5 , 2 )  not  null ": "DECIMAL(5, 2) NOT NULL", "INT NULL": "INT", "CHAR": "CHAR(1)", "VARCHAR": "VARCHAR(1)",
		"BINARY": "BINARY(1)", "VARBINARY(2147483647)": "BYTES", "VARCHAR(2147483647) NOT NULL": "STRING NOT NULL",
		"TIME": "TIME(0)", "TIME(3) WITHOUT TIME ZONE": "TIME(3)", "TIMESTAMP": "TIMESTAMP(6)",
		"TIMESTAMP(3) WITHOUT TIME ZONE NOT NULL": "TIMESTAMP(3) NOT NULL",
		"TIMESTAMP_LTZ(3)":                        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
		"TIMESTAMP WITH LOCAL TIME ZONE":          "TIMESTAMP(6) WITH LOCAL TIME ZONE",
		"array<int not null>":                     "ARRAY<INT NOT NULL>",
		"MAP<STRING NOT NULL, ARRAY<INT>>":        "", "MULTISET<STRING> NOT NULL": "", "VECTOR<FLOAT, 128>": "",
		"ROW<a INT, `b ``c` ROW<> NOT NULL>": "ROW<`a` INT, `b ``c` ROW<> NOT NULL>",
	} {
		if want == "" {
			want = text
		}
		typ, err := ParseType(text)
		require.NoError(t, err, text)
		require.Equal(t, want, typ.String(), text)
	}
}

func TestBadTypeTexts(t *testing.T) {
	for _, text := range []string{
		"", "INT INT", "INT NOT", "DECIMAL(39, 0)", "DECIMAL(0, 0)", "DECIMAL(5, 6)", "DECIMAL(5,", "DECIMAL(-1)", "CHAR(0)",
		"VARCHAR(2147483648)", "TIME(10)", "TIMESTAMP(10)", "TIMESTAMP(x)", "ARRAY", "ARRAY<", "ARRAY<INT", "MAP<INT>",
		"ROW<a INT, a INT>", "ROW<`a INT>", "VECTOR<INT>", "VECTOR<INT, 0>", "CHAR(+1)", "INT\x00", "INT\xff", "GEOMETRY(x",
		strings.Repeat("ARRAY<", 100) + "INT" + strings.Repeat(">", 100), strings.Repeat(" ", maxTypeText+1),
		"TIMESTAMP(3) WITH TIME ZONE",
	} {
		_, err := ParseType(text)
		require.ErrorIs(t, err, errs.ErrInvalid, "%.60q", text)
	}
	_, err := ParseType("HYPERLOGLOG")
	require.ErrorIs(t, err, errs.ErrUnsupported)
	require.ErrorContains(t, err, "HYPERLOGLOG")
}

// genType draws any type; ids of ROW members are left 0.
func genType(depth int) *rapid.Generator[Type] {
	return rapid.Custom(func(t *rapid.T) Type {
		top := Geography
		if depth == 0 {
			top = TimestampLTZ
		}
		typ := Type{Kind: Kind(rapid.IntRange(1, int(top)).Draw(t, "kind")), Nullable: rapid.Bool().Draw(t, "nullable")}
		part := func(name string) *Type {
			p := genType(depth-1).Draw(t, name)
			return &p
		}
		switch typ.Kind {
		case Char, VarChar, Binary, VarBinary:
			typ.Length = rapid.SampledFrom([]int{1, 2, 77, MaxLength}).Draw(t, "length")
		case Decimal:
			typ.Prec = rapid.IntRange(1, 38).Draw(t, "prec")
			typ.Scale = rapid.IntRange(0, typ.Prec).Draw(t, "scale")
		case Time, Timestamp, TimestampLTZ:
			typ.Prec = rapid.IntRange(0, 9).Draw(t, "prec")
		case Array, Multiset:
			typ.Elem = part("elem")
		case Vector:
			typ.Elem, typ.Length = part("elem"), rapid.IntRange(1, 9).Draw(t, "length")
		case Map:
			typ.Key, typ.Elem = part("key"), part("elem")
		case Row:
			names := rapid.SliceOfNDistinct(rapid.StringMatching("[a-zü `<>,]{1,5}"), 0, 3, rapid.ID).Draw(t, "names")
			typ.Fields = []Field{}
			for _, name := range names {
				typ.Fields = append(typ.Fields, Field{Name: name, Type: *part("member")})
			}
		}
		return typ
	})
}

func TestTypeTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := genType(3).Draw(t, "type")
		back, err := ParseType(typ.String())
		require.NoError(t, err)
		require.True(t, typ.Equal(back), "%s became %s", typ, back)
		require.True(t, typ.Clone().Equal(typ))
	})
}

func FuzzParseType(f *testing.F) {
	for _, seed := range []string{"INT", "DECIMAL(5, 2) NOT NULL", "ROW<`a` ARRAY<MAP<INT, STRING>>>", "TIMESTAMP_LTZ(3)", "VECTOR<FLOAT, 3>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		typ, err := ParseType(text)
		if err != nil {
			return
		}
		back, err := ParseType(typ.String())
		if err != nil || !typ.Equal(back) {
			t.Fatalf("%q became %q: %v", text, typ, err)
		}
		if err := typ.validate(0); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
