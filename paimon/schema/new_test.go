package schema

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
)

// fields builds columns from name, type, name, type, ...
func fields(t testing.TB, pairs ...string) []Field {
	var out []Field
	for i := 0; i < len(pairs); i += 2 {
		typ, err := ParseType(pairs[i+1])
		require.NoError(t, err)
		out = append(out, Field{Name: pairs[i], Type: typ})
	}
	return out
}

func TestNewAssignsIDsDepthFirst(t *testing.T) {
	// The example of the format: f3 ROW<f0, f1> has children 3 and 4, the next
	// column is 5.
	in := fields(t, "a", "INT", "b", "INT", "f3", "ROW<f0 INT, f1 ARRAY<ROW<x INT>>>", "c", "MAP<ROW<k INT>, ROW<v INT>>")
	s, err := New(in, nil, nil, nil, 5)
	require.NoError(t, err)
	ids := []int{}
	walkFields(s.Fields, func(f *Field) { ids = append(ids, f.ID) })
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, ids)
	require.Equal(t, 5, s.Fields[2].Type.Fields[1].Type.Elem.Fields[0].ID)
	require.Equal(t, 8, s.HighestFieldID)
	require.Zero(t, in[2].Type.Fields[1].ID, "the caller's fields are not touched")
	require.Equal(t, int64(5), s.TimeMillis)
	require.Equal(t, 3, s.Version)

	in = fields(t, "a", "INT", "b", "INT")
	in[0].ID, in[1].ID = 7, 3
	s, err = New(in, nil, nil, nil, 0)
	require.NoError(t, err)
	require.Equal(t, 7, s.Fields[0].ID, "ids that differ are kept")
	require.Equal(t, 7, s.HighestFieldID)
}

func TestNewMovesKeyOptions(t *testing.T) {
	s, err := New(fields(t, "k", "INT", "p", "STRING", "v", "INT"), nil, nil,
		map[string]string{"primary-key": "k, p", "partition": "p", "bucket": "2"}, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"k", "p"}, s.PrimaryKeys)
	require.Equal(t, []string{"p"}, s.PartitionKeys)
	require.Equal(t, map[string]string{"bucket": "2"}, s.Options)
	require.Equal(t, "INT NOT NULL", s.Fields[0].Type.String(), "primary-key columns become NOT NULL")
	o, err := ParseOptions(s)
	require.NoError(t, err)
	require.Equal(t, []string{"k"}, o.BucketKey)
	require.Equal(t, []int{0}, s.BucketKeyIndexes())
}

func TestNewRefuses(t *testing.T) {
	base := []string{"k", "INT", "p", "STRING", "v", "DOUBLE", "n", "ARRAY<INT>"}
	type opts = map[string]string
	for name, c := range map[string]struct {
		fields             []string
		partition, primary []string
		options            opts
		want               error
		says               string
	}{
		"no column":            {nil, nil, nil, nil, errs.ErrInvalid, "at least one column"},
		"blank name":           {[]string{" ", "INT"}, nil, nil, nil, errs.ErrInvalid, "blank name"},
		"NUL in name":          {[]string{"a\x00", "INT"}, nil, nil, nil, errs.ErrInvalid, "NUL"},
		"bytes in name":        {[]string{"\xff", "INT"}, nil, nil, nil, errs.ErrInvalid, "UTF-8"},
		"same name":            {[]string{"a", "INT", "a", "INT"}, nil, nil, nil, errs.ErrInvalid, `named "a"`},
		"key prefix":           {[]string{"_KEY_a", "INT"}, nil, nil, nil, errs.ErrInvalid, "system column"},
		"sequence":             {[]string{"_SEQUENCE_NUMBER", "BIGINT"}, nil, nil, nil, errs.ErrInvalid, "system column"},
		"kind":                 {[]string{"_VALUE_KIND", "TINYINT"}, nil, nil, nil, errs.ErrInvalid, "system column"},
		"level":                {[]string{"_LEVEL", "INT"}, nil, nil, nil, errs.ErrInvalid, "system column"},
		"row id":               {[]string{"_ROW_ID", "BIGINT"}, nil, nil, nil, errs.ErrInvalid, "system column"},
		"offset":               {[]string{"_REALTIME_OFFSET", "BIGINT"}, nil, nil, nil, errs.ErrInvalid, "system column"},
		"blob":                 {[]string{"a", "BLOB"}, nil, nil, nil, errs.ErrUnsupported, "BLOB"},
		"variant inside":       {[]string{"a", "ROW<x ARRAY<VARIANT>>"}, nil, nil, nil, errs.ErrUnsupported, "VARIANT"},
		"vector":               {[]string{"a", "VECTOR<FLOAT, 3>"}, nil, nil, nil, errs.ErrUnsupported, "VECTOR"},
		"geometry":             {[]string{"a", "GEOMETRY(x)"}, nil, nil, nil, errs.ErrUnsupported, "GEOMETRY"},
		"unknown key":          {base, nil, []string{"x"}, opts{"bucket": "1"}, errs.ErrInvalid, `"x" is not a column`},
		"key twice":            {base, nil, []string{"k", "k"}, opts{"bucket": "1"}, errs.ErrInvalid, "twice"},
		"unknown partition":    {base, []string{"x"}, nil, nil, errs.ErrInvalid, `"x" is not a column`},
		"key is partition":     {base, []string{"p"}, []string{"p"}, opts{"bucket": "1"}, errs.ErrInvalid, "besides the partition"},
		"nested key":           {base, nil, []string{"n"}, opts{"bucket": "1"}, errs.ErrInvalid, "nested type"},
		"nested partition":     {base, []string{"n"}, nil, nil, errs.ErrUnsupported, "directory name"},
		"cross partition":      {base, []string{"p"}, []string{"k"}, opts{"bucket": "1"}, errs.ErrUnsupported, "without the partition key"},
		"dynamic bucket":       {base, nil, []string{"k"}, nil, errs.ErrUnsupported, `bucket = "-1"`},
		"postponed bucket":     {base, nil, []string{"k"}, opts{"bucket": "-2"}, errs.ErrUnsupported, `bucket = "-2"`},
		"bucket zero":          {base, nil, []string{"k"}, opts{"bucket": "0"}, errs.ErrInvalid, `bucket = "0"`},
		"append without key":   {base, nil, nil, opts{"bucket": "2"}, errs.ErrInvalid, "needs the option bucket-key"},
		"key without bucket":   {base, nil, nil, opts{"bucket-key": "k"}, errs.ErrInvalid, "needs a fixed number"},
		"spaces stay":          {base, nil, nil, opts{"bucket": "2", "bucket-key": "k, v"}, errs.ErrInvalid, `" v" is not a column`},
		"bucket key twice":     {base, nil, nil, opts{"bucket": "2", "bucket-key": "k,k"}, errs.ErrInvalid, "twice"},
		"bucket key nested":    {base, nil, nil, opts{"bucket": "2", "bucket-key": "n"}, errs.ErrInvalid, "nested type"},
		"bucket key partition": {base, []string{"p"}, nil, opts{"bucket": "2", "bucket-key": "p"}, errs.ErrInvalid, "contains the partition key"},
		"bucket key value":     {base, nil, []string{"k"}, opts{"bucket": "2", "bucket-key": "v"}, errs.ErrInvalid, "not part of the primary key"},
		"both key lists":       {base, nil, []string{"k"}, opts{"bucket": "1", "primary-key": "k"}, errs.ErrInvalid, "together with"},
		"session option":       {base, nil, nil, opts{"path": "/w"}, errs.ErrInvalid, "belongs to a session"},
		"bytes in option":      {base, nil, nil, opts{"owner": "\xff"}, errs.ErrInvalid, "UTF-8"},
		"unknown option":       {base, nil, nil, opts{"no.such": "1"}, errs.ErrUnsupported, `no.such = "1" is not known`},
		"orc":                  {base, nil, nil, opts{"file.format": "ORC"}, errs.ErrUnsupported, `file.format = "orc"`},
		"binary partition":     {[]string{"p", "BYTES", "v", "INT"}, []string{"p"}, nil, nil, errs.ErrUnsupported, "directory name"},
		"time partition": {
			[]string{"p", "TIME(3)", "v", "INT"}, []string{"p"}, nil, opts{"partition.legacy-name": "false"},
			errs.ErrUnsupported, "partition.legacy-name",
		},
	} {
		var in []Field
		if c.fields != nil {
			in = fields(t, c.fields...)
		}
		_, err := New(in, c.partition, c.primary, c.options, 0)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err := New([]Field{{Name: "a", Type: Type{Kind: Decimal, Prec: 40}}}, nil, nil, nil, 0)
	require.ErrorIs(t, err, errs.ErrInvalid)
	_, err = New([]Field{{Name: "a", Type: Type{Kind: Map}}}, nil, nil, nil, 0)
	require.ErrorIs(t, err, errs.ErrInvalid)
}

func TestSystemFields(t *testing.T) {
	key := KeyField(Field{ID: 3, Name: "id", Type: Type{Kind: Int}, Description: "d"})
	require.Equal(t, Field{ID: 1073741826, Name: "_KEY_id", Type: Type{Kind: Int}}, key)
	require.Equal(t, 2147483646, SequenceField().ID)
	require.Equal(t, "BIGINT NOT NULL", SequenceField().Type.String())
	require.Equal(t, 2147483645, ValueKindField().ID)
	require.Equal(t, "TINYINT NOT NULL", ValueKindField().Type.String())
	require.Equal(t, 536878080, ElementID(7, 1))
	require.Equal(t, 536862718, MapKeyID(8, 1))
	require.Equal(t, 536879104, ElementID(8, 1))
	require.Equal(t, 536870910, MapKeyID(0, 1))
	require.Equal(t, 536870912, ElementID(0, 1))
}
