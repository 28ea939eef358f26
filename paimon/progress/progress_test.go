package progress

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/paimon/path"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func kv(pairs ...string) []path.KV {
	var out []path.KV
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, path.KV{Key: pairs[i], Value: pairs[i+1]})
	}
	return out
}

// example is the map of the format description, given in another order.
func example(t testing.TB) *Offsets {
	o, err := (*Offsets)(nil).Merge([]Range{
		{Partition: kv("region", "cn", "dt", "a/b"), Bucket: 10, Begin: 0, End: 12},
		{Partition: kv("dt", "2"), Bucket: 2, Begin: 3, End: 9},
		{Bucket: 0, Begin: 0, End: 7},
	})
	require.NoError(t, err)
	return o
}

const exampleText = `{
    "version": 1,
    "offsets": [
        {
            "partition": {},
            "bucket": 0,
            "offset": 7
        },
        {
            "partition": {
                "dt": "2"
            },
            "bucket": 2,
            "offset": 9
        },
        {
            "partition": {
                "dt": "a/b",
                "region": "cn"
            },
            "bucket": 10,
            "offset": 12
        }
    ]
}`

func TestOffsetsHaveTheExactText(t *testing.T) {
	data, err := example(t).Marshal()
	require.NoError(t, err)
	require.Equal(t, exampleText, string(data))
	back, err := Parse(data, "x.offsets")
	require.NoError(t, err)
	require.True(t, back.Equal(example(t)))

	var none *Offsets
	data, err = none.Marshal()
	require.NoError(t, err)
	require.Equal(t, "{\n    \"version\": 1,\n    \"offsets\": []\n}", string(data))
	back, err = Parse(data, "x.offsets")
	require.NoError(t, err)
	require.Zero(t, back.Len())
	require.True(t, back.Equal(nil))
	require.True(t, none.Equal(back))
}

func TestMalformedOffsetsAreCorrupt(t *testing.T) {
	entry := `{"partition":{},"bucket":0,"offset":1}`
	for text, reason := range map[string]string{
		``:                             "ends early",
		`{`:                            "ends early",
		`[]`:                           "$: is an array, an object is expected",
		`{"offsets":[]}`:               `$: key "version" is missing`,
		`{"version":2,"offsets":[]}`:   "version is 2",
		`{"version":"1","offsets":[]}`: "version: is a string",
		`{"version":1}`:                `key "offsets" is missing`,
		`{"version":1,"offsets":{}}`:   "offsets: is an object",
		`{"version":1,"offsets":[7]}`:  "offsets[0]: is a number",
		`{"version":1,"offsets":[{"bucket":0,"offset":1}]}`:                             `offsets[0]: key "partition" is missing`,
		`{"version":1,"offsets":[{"partition":{"a":1},"bucket":0,"offset":1}]}`:         "offsets[0].partition.a: is a number",
		`{"version":1,"offsets":[{"partition":{},"bucket":-1,"offset":1}]}`:             "offsets[0].bucket: -1 is not between",
		`{"version":1,"offsets":[{"partition":{},"bucket":0,"offset":-1}]}`:             "offsets[0].offset: -1 is not between",
		`{"version":1,"offsets":[{"partition":{},"bucket":0,"offset":1.5}]}`:            "offsets[0].offset: 1.5 is not a whole",
		`{"version":1,"offsets":[{"partition":{},"bucket":0,"offset":1e400}]}`:          "offsets[0].offset: 1e400 is not a whole",
		`{"version":1,"offsets":[{"partition":{},"bucket":0}]}`:                         `key "offset" is missing`,
		`{"version":1,"offsets":[` + entry + `,` + entry + `]}`:                         "offsets[1]: partition and bucket appear twice",
		`{"version":1,"version":1,"offsets":[]}`:                                        `key "version" appears twice`,
		`{"version":1,"offsets":[{"partition":{"a":"1","a":"2"},"bucket":0}]}`:          `key "a" appears twice`,
		`{"version":1,"offsets":[]} x`:                                                  "text after the end",
		"\ufeff" + `{"version":1,"offsets":[]}`:                                         "invalid character",
		"{\"version\":1,\"offsets\":[{\"partition\":{\"a\":\"\xff\"},\"bucket\":0}]}":   "not UTF-8",
		`{"version":1,"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "nested deeper",
		strings.Repeat(" ", MaxOffsetsBytes+1):                                          "at most",
	} {
		_, err := Parse([]byte(text), "x.offsets")
		require.ErrorIs(t, err, errs.ErrCorrupt, "%.80s", text)
		require.ErrorContains(t, err, "x.offsets")
		require.ErrorContains(t, err, reason, "%.80s", text)
	}
	_, err := Parse([]byte(`{"more":[null],"version":1,"offsets":[{"partition":{},"bucket":0,"offset":1,"x":{}}]}`), "x")
	require.NoError(t, err)
}

func TestMergeKeepsOrderAndRefusesOverlap(t *testing.T) {
	o := example(t)
	next, err := o.Merge([]Range{
		{Bucket: 0, Begin: 20, End: 30}, {Bucket: 0, Begin: 7, End: 10}, {Bucket: 1, Begin: 0, End: 1},
	})
	require.NoError(t, err)
	end, ok := next.Get(nil, 0)
	require.True(t, ok)
	require.Equal(t, int64(30), end)
	end, ok = next.Get(kv("region", "cn", "dt", "a/b"), 10)
	require.True(t, ok)
	require.Equal(t, int64(12), end)
	end, ok = o.Get(nil, 0)
	require.True(t, ok)
	require.Equal(t, int64(7), end, "the receiver is unchanged")
	_, ok = o.Get(kv("dt", "3"), 2)
	require.False(t, ok)

	for name, ranges := range map[string][]Range{
		"below the end":    {{Bucket: 0, Begin: 6, End: 9}},
		"empty":            {{Bucket: 1, Begin: 3, End: 3}},
		"negative":         {{Bucket: 1, Begin: -1, End: 3}},
		"overlap in list":  {{Bucket: 1, Begin: 0, End: 5}, {Bucket: 1, Begin: 4, End: 8}},
		"negative bucket":  {{Bucket: -1, Begin: 0, End: 5}},
		"duplicate key":    {{Partition: kv("a", "1", "a", "2"), Begin: 0, End: 5}},
		"text not in UTF8": {{Partition: kv("a", "\xff"), Begin: 0, End: 5}},
	} {
		_, err := o.Merge(ranges)
		require.ErrorIs(t, err, errs.ErrInvalid, name)
	}
	gone := next.Without(func(k Key) bool { return k.Partition == Canonical([]string{"dt"}, []string{"2"}) })
	require.Equal(t, next.Len()-1, gone.Len())
	set, err := gone.With(nil, 0, 3)
	require.NoError(t, err)
	require.False(t, set.Equal(gone))
	require.True(t, gone.Clone().Equal(gone))
}

func TestCanonicalTellsPartitionsApart(t *testing.T) {
	require.Equal(t, "", Canonical(nil, nil))
	require.Equal(t, "dt=a%2Fb/region=cn", Canonical([]string{"region", "dt"}, []string{"cn", "a/b"}))
	require.Equal(t, KeyOf(kv("b", "2", "a", "1"), 3), KeyOf(kv("a", "1", "b", "2"), 3))
	require.NotEqual(t, KeyOf(kv("a", "1/b=2"), 0), KeyOf(kv("a", "1", "b", "2"), 0))
}

func TestOffsetsSurviveTheFile(t *testing.T) {
	word := rapid.StringMatching(`[a-z/="%\\<ü ]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		o := &Offsets{}
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			var part []path.KV
			for key, text := range rapid.MapOfN(word, word, 0, 3).Draw(t, "partition") {
				part = append(part, path.KV{Key: key, Value: text})
			}
			var err error
			o, err = o.With(part, rapid.IntRange(0, 1000).Draw(t, "bucket"), rapid.Int64Min(0).Draw(t, "end"))
			require.NoError(t, err)
		}
		data, err := o.Marshal()
		require.NoError(t, err)
		back, err := Parse(data, "x")
		require.NoError(t, err)
		require.True(t, o.Equal(back))
		again, err := back.Marshal()
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
	})
}

func TestGoldenOffsetsKeepTheirText(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(golden.Dir(t), "*", "table", "metadata", "*.offsets"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		o, err := Parse(data, file)
		require.NoError(t, err)
		require.Equal(t, 2, o.Len())
		again, err := o.Marshal()
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
	}
}

func TestLocations(t *testing.T) {
	require.Equal(t, "/w/t/metadata", MetadataDir("/w/t", ""))
	require.Equal(t, "/w/t/branch/branch-x/metadata", MetadataDir("/w/t", "x"))
	require.Equal(t, "/w/t/metadata/u.offsets", OffsetsFile("/w/t", "main", "u"))
	require.Equal(t, "/w/t/metadata/u.position", PositionFile("/w/t", "", PositionName("u")))
	require.True(t, IsProgressFile("u.offsets"))
	require.False(t, IsProgressFile("v1.metadata.json"))

	got, err := Candidates("/tmp/old/metadata/u.offsets", "/w/t", "")
	require.NoError(t, err)
	require.Equal(t, []string{"/w/t/metadata/u.offsets", "/tmp/old/metadata/u.offsets"}, got)
	got, err = Candidates("/w/t/metadata/u.offsets", "/w/t", "b")
	require.NoError(t, err)
	require.Equal(t, []string{"/w/t/branch/branch-b/metadata/u.offsets", "/w/t/metadata/u.offsets"}, got)
	for _, stored := range []string{"", "/", "x/..", "/a/../b/u.offsets", "/a/u.parquet", "a\\u.offsets", "a/\x00/u.offsets", "/etc/passwd"} {
		_, err := Candidates(stored, "/w/t", "")
		require.ErrorIs(t, err, errs.ErrInvalid, stored)
	}
}

func FuzzOffsets(f *testing.F) {
	f.Add([]byte(exampleText))
	f.Add([]byte(`{"version":1,"offsets":[]}`))
	f.Add([]byte(`{"version":1,"offsets":[{"partition":{"a":"\u0000/"},"bucket":0,"offset":9223372036854775807}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Parse(data, "x")
		if err != nil {
			require.ErrorIs(t, err, errs.ErrCorrupt)
			return
		}
		text, err := o.Marshal()
		require.NoError(t, err)
		back, err := Parse(text, "x")
		require.NoError(t, err)
		require.True(t, o.Equal(back))
	})
}
