package schema

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/internal/errs"
)

// example is the primary-key table of the format description.
const example = `{
  "version" : 3, "id" : 0,
  "fields" : [ { "id" : 0, "name" : "f0", "type" : "STRING NOT NULL" },
               { "id" : 1, "name" : "f1", "type" : "INT NOT NULL" },
               { "id" : 2, "name" : "f2", "type" : "INT NOT NULL" },
               { "id" : 3, "name" : "f3", "type" : "DOUBLE" } ],
  "highestFieldId" : 3,
  "partitionKeys" : [ "f1" ],
  "primaryKeys" : [ "f0", "f1", "f2" ],
  "options" : { "bucket" : "2", "bucket-key" : "f2", "manifest.format" : "avro", "file.format" : "parquet" },
  "timeMillis" : 1756266931880
}`

func TestParseExample(t *testing.T) {
	s, err := Parse([]byte(example), "t/schema/schema-0")
	require.NoError(t, err)
	require.Equal(t, []string{"f0", "f1", "f2"}, s.PrimaryKeys)
	require.Equal(t, []int{0, 2}, s.TrimmedKey())
	require.Equal(t, []int{1}, s.PartitionIndexes())
	require.Equal(t, []int{2}, s.BucketKeyIndexes())
	require.True(t, s.IsPrimaryKey())
	require.Equal(t, 3, s.FieldIndex("f3"))
	require.Equal(t, -1, s.FieldIndex("F3"))
	require.Equal(t, 2, s.FieldByID(2))
	require.Equal(t, -1, s.FieldByID(9))
	require.Equal(t, "STRING NOT NULL", s.Fields[0].Type.String())
	require.Equal(t, int64(1756266931880), s.TimeMillis)
	require.Equal(t, `"id": 0,`, strings.TrimSpace(strings.Split(string(s.Marshal()), "\n")[2]))
}

func TestOldVersionsImplyOptions(t *testing.T) {
	text := func(version, options string) string {
		return `{` + version + `"id":0,"fields":[{"id":0,"name":"a","type":"INT"}],"highestFieldId":0,` +
			`"partitionKeys":[],"primaryKeys":[],"options":{` + options + `}}`
	}
	for _, c := range []struct {
		version, options string
		want             map[string]string
	}{
		{``, ``, map[string]string{"bucket": "1", "file.format": "orc"}},
		{`"version":1,`, `"bucket":"4"`, map[string]string{"bucket": "4", "file.format": "orc"}},
		{`"version":2,`, ``, map[string]string{"file.format": "orc"}},
		{`"version":2,`, `"file.format":"avro"`, map[string]string{"file.format": "avro"}},
		{`"version":3,`, ``, map[string]string{}},
	} {
		s, err := Parse([]byte(text(c.version, c.options)), "x")
		require.NoError(t, err)
		require.Equal(t, c.want, s.Options)
		require.Zero(t, s.TimeMillis)
	}
	_, err := Parse([]byte(text(`"version":4,`, "")), "x")
	require.ErrorIs(t, err, errs.ErrUnsupported)
}

func TestNestedTypesAreObjects(t *testing.T) {
	fields := `[{"id":0,"name":"a","type":{"type":"array not null","element":"INT NOT NULL"}},` +
		`{"id":1,"name":"m","type":{"type":"MAP","key":"STRING NOT NULL","value":{"type":"MULTISET","element":"STRING"}}},` +
		`{"id":2,"name":"r","description":"d","defaultValue":"x","type":{"type":"ROW NULL","fields":[{"id":3,"name":"b","type":"BOOLEAN"},` +
		`{"id":4,"name":"v","type":{"type":"VECTOR","element":"FLOAT","length":128}},{"id":6,"name":"e","type":{"type":"ROW","fields":[]}}]}}]`
	s, err := Parse([]byte(withFields(fields, 6)), "x")
	require.NoError(t, err)
	require.Equal(t, "ARRAY<INT NOT NULL> NOT NULL", s.Fields[0].Type.String())
	require.Equal(t, "MAP<STRING NOT NULL, MULTISET<STRING>>", s.Fields[1].Type.String())
	require.Equal(t, "ROW<`b` BOOLEAN, `v` VECTOR<FLOAT, 128>, `e` ROW<>>", s.Fields[2].Type.String())
	require.Equal(t, 4, s.Fields[2].Type.Fields[1].ID)
	require.Equal(t, "x", *s.Fields[2].Default)
	again, err := Parse(s.Marshal(), "x")
	require.NoError(t, err)
	require.Equal(t, s, again)
}

func withFields(fields string, highest int) string {
	s := Schema{Version: 3, HighestFieldID: highest, Options: map[string]string{}}
	return strings.Replace(string(s.Marshal()), `"fields": []`, `"fields": `+fields, 1)
}

func TestDamagedSchemasAreCorrupt(t *testing.T) {
	deep := strings.Repeat(`{"type":"ARRAY","element":`, 70) + `"INT"` + strings.Repeat(`}`, 70)
	swap := func(old, text string) string {
		require.Contains(t, example, old)
		return strings.Replace(example, old, text, 1)
	}
	for text, reason := range map[string]string{
		``:                                      "ends early",
		`null`:                                  "$: is null, an object",
		example + "}":                           "text after the end",
		"\ufeff" + example:                      "invalid character",
		swap(`"id" : 0,`, ``):                   `key "id" is missing`,
		swap(`"id" : 0,`, `"id" : -1,`):         "id: -1 is not between",
		swap(`"id" : 0,`, `"id" : 1e400,`):      "id: 1e400 is not a whole",
		swap(`"id" : 0,`, `"id" : 1.0,`):        "id: 1.0 is not a whole",
		swap(`"id" : 0,`, `"id" : "0",`):        "id: is a string",
		swap(`"id" : 0,`, `"id":0,"id":0,`):     `key "id" appears twice`,
		swap(`"version" : 3`, `"version" : 0`):  "version: 0 is not between",
		swap(`"highestFieldId" : 3`, `"x" : 3`): `key "highestFieldId" is missing`,
		swap(`"highestFieldId" : 3`, `"highestFieldId" : 2`):                           `field "f3" has the id 3 above highestFieldId 2`,
		swap(`"id" : 3, "name"`, `"id" : 2, "name"`):                                   `fields "f2" and "f3" have the same id 2`,
		swap(`"name" : "f3"`, `"name" : "f2"`):                                         `two columns are named "f2"`,
		swap(`"name" : "f3"`, `"name" : ""`):                                           "fields[3]: name is empty",
		swap(`"DOUBLE"`, `"DOUBLE("`):                                                  "fields[3].type: type",
		swap(`"DOUBLE"`, `7`):                                                          "fields[3].type: is a number",
		swap(`"DOUBLE"`, `"ARRAY<INT>"`):                                               "must be a JSON object",
		swap(`"DOUBLE"`, `{"type":"ARRAY"}`):                                           `fields[3].type: key "element" is missing`,
		swap(`"DOUBLE"`, `{"type":"ARRAY NOT"}`):                                       "is not the name of a nested type",
		swap(`"DOUBLE"`, `{"type":"ROW","fields":[{"id":0,"name":"x","type":"INT"}]}`): "have the same id 0",
		swap(`"DOUBLE"`, deep):                                                         "nests deeper",
		swap(`"partitionKeys" : [ "f1" ]`, `"partitionKeys" : [ "f9" ]`):               `partition key "f9" is not a column`,
		swap(`"partitionKeys" : [ "f1" ]`, `"partitionKeys" : [ "f1", "f1" ]`):         `partition key names "f1" twice`,
		swap(`"primaryKeys" : [ "f0", "f1", "f2" ]`, `"primaryKeys" : [ "f1" ]`):       "no column besides the partition keys",
		swap(`"bucket" : "2"`, `"bucket" : 2`):                                         "options.bucket: is a number",
		swap(`"timeMillis" : 1756266931880`, `"timeMillis" : true`):                    "timeMillis: is a boolean",
		swap(`"f0", "f1", "f2"`, strings.Repeat(`"f0",`, maxKeys)+`"f0"`):              "at most 1000 are accepted",
		strings.Repeat(" ", MaxFileBytes+1):                                            "at most 8388608 are accepted",
		`{"x":` + strings.Repeat("[", 1000):                                            "nested deeper",
		`{"x":[` + strings.Repeat("1,", maxValues) + `1]}`:                             "more than",
	} {
		_, err := Parse([]byte(text), "t/schema/schema-0")
		require.ErrorIs(t, err, errs.ErrCorrupt, "%.80s", text)
		require.ErrorContains(t, err, "t/schema/schema-0")
		require.ErrorContains(t, err, reason)
	}
	_, err := Parse([]byte(example), "t/schema/schema-1")
	require.ErrorContains(t, err, "the file name says 1")
	_, err = Parse([]byte(swap(`"DOUBLE"`, `"HLL"`)), "x")
	require.ErrorIs(t, err, errs.ErrUnsupported)
	_, err = Parse([]byte(swap(`"id" : 0,`, `"id" : 0, "later" : {"a" : [null]},`)), "x")
	require.NoError(t, err, "unknown keys are ignored")
}

func TestSchemaReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Schema{Version: 3, Options: map[string]string{"k<": "v\n"}, PartitionKeys: []string{}, PrimaryKeys: []string{}}
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`.{1,4}`), 1, 4, rapid.ID).Draw(t, "names")
		for _, name := range names {
			s.Fields = append(s.Fields, Field{Name: name, Type: genType(2).Draw(t, "type")})
		}
		s.Fields = append(s.Fields, Field{Name: "twin of the first, so that ids are assigned", Type: Type{Kind: Int}})
		s.assignIDs()
		back, err := Parse(s.Marshal(), "x")
		require.NoError(t, err)
		require.Equal(t, len(s.Fields), len(back.Fields))
		for i := range s.Fields {
			require.True(t, s.Fields[i].Equal(back.Fields[i]), "%s became %s", s.Fields[i].Type, back.Fields[i].Type)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(withFields(`[{"id":0,"name":"a","type":{"type":"ROW","fields":[{"id":1,"name":"b","type":"DATE"}]}}]`, 1)))
	f.Add([]byte(withFields(`[{"id":0,"name":"a","type":{"type":"MAP","key":"INT","value":{"type":"VECTOR","element":"FLOAT","length":2}}}]`, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, "x")
		if err != nil {
			require.True(t, errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrUnsupported), "%v", err)
			return
		}
		again, err := Parse(s.Marshal(), "x")
		require.NoError(t, err)
		require.Equal(t, s, again)
		ArrowSchema(s.Fields)
		s.BucketKeyIndexes()
		if o, err := ParseOptions(s); err == nil {
			_ = o.CheckWrite(s)
			o.StatsModes(s.Fields)
		}
	})
}
