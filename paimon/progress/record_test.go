package progress

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
)

const (
	uuidA = "11111111-1111-4111-8111-11111111111a"
	uuidB = "22222222-2222-4222-8222-22222222222b"
	uuidC = "33333333-3333-4333-8333-33333333333c"
)

func TestSmallRecordStaysInTheProperty(t *testing.T) {
	r := Record{Session: uuidA, Attempt: uuidB, Position: []byte("p<1")}.WithUser("loader-1", 17)
	property, content, err := r.Marshal("")
	require.NoError(t, err)
	require.Nil(t, content)
	require.Equal(t, `{"version":1,"session":"`+uuidA+`","attempt":"`+uuidB+`","users":[["loader-1",17]],"position":"cDwx"}`, property)
	back, rest, err := ParseRecord(property, "snapshot-1")
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, r, back)
}

func TestNoPositionIsNotAnEmptyPosition(t *testing.T) {
	for _, position := range [][]byte{nil, {}} {
		r := Record{Session: uuidA, Attempt: uuidB, Position: position}
		property, _, err := r.Marshal("")
		require.NoError(t, err)
		back, _, err := ParseRecord(property, "snapshot-1")
		require.NoError(t, err)
		require.Equal(t, position == nil, back.Position == nil)
		require.Empty(t, back.Position)
	}
}

func TestLargeRecordMovesToAFile(t *testing.T) {
	r := Record{Session: uuidA, Attempt: uuidB, Position: bytes.Repeat([]byte{0xff}, MaxPositionBytes)}
	for i := range MaxUsers {
		r = r.WithUser(fmt.Sprint(i)+strings.Repeat("\x01", MaxUserBytes-2), int64(i))
	}
	name := PositionName(uuidC)
	property, content, err := r.Marshal(name)
	require.NoError(t, err)
	require.LessOrEqual(t, len(property), MaxInlineBytes)
	require.NotEmpty(t, content)
	require.LessOrEqual(t, len(content), MaxRecordBytes)
	head, rest, err := ParseRecord(property, "snapshot-1")
	require.NoError(t, err)
	require.Equal(t, name, rest)
	require.Equal(t, uuidB, head.Attempt)
	require.NoError(t, head.ParseFile(content, rest))
	require.Equal(t, r, head)

	other := Record{Session: uuidA, Attempt: uuidC}
	require.ErrorIs(t, other.ParseFile(content, rest), errs.ErrCorrupt)
	_, _, err = r.Marshal("../x.position")
	require.ErrorIs(t, err, errs.ErrInvalid)
}

func TestUsersAreBounded(t *testing.T) {
	var r Record
	for i := range 100 {
		r = r.WithUser(fmt.Sprint("u", i), int64(i))
	}
	require.Len(t, r.Users, MaxUsers)
	_, ok := r.Identifier("u35")
	require.False(t, ok, "the oldest are forgotten")
	r = r.WithUser("u36", 7)
	id, ok := r.Identifier("u36")
	require.True(t, ok)
	require.Equal(t, int64(36), id, "an identifier never goes down")
	require.Equal(t, "u36", r.Users[0].Name)
	require.Len(t, r.Users, MaxUsers)
}

func TestRecordRefusesWhatItCannotRead(t *testing.T) {
	good := Record{Session: uuidA, Attempt: uuidB}
	for name, r := range map[string]Record{
		"no session":     {Attempt: uuidB},
		"upper case":     {Session: strings.ToUpper(uuidA), Attempt: uuidB},
		"large position": {Session: uuidA, Attempt: uuidB, Position: make([]byte, MaxPositionBytes+1)},
		"empty user":     good.WithUser("", 1),
		"long user":      good.WithUser(strings.Repeat("a", MaxUserBytes+1), 1),
		"user bytes":     good.WithUser("\xff", 1),
	} {
		_, _, err := r.Marshal(PositionName(uuidC))
		require.ErrorIs(t, err, errs.ErrInvalid, name)
	}
}

func TestMalformedRecordsAreCorrupt(t *testing.T) {
	head := `"version":1,"session":"` + uuidA + `","attempt":"` + uuidB + `"`
	for _, text := range []string{
		``, `[]`, `{}`, `{"version":2}`, `{"version":1,"attempt":"` + uuidB + `"}`,
		`{"version":1,"session":"x","attempt":"` + uuidB + `"}`,
		`{` + head + `,"file":"../` + uuidC + `.position"}`, `{` + head + `,"file":"a.position"}`,
		`{` + head + `,"users":{}}`, `{` + head + `,"users":[["a"]]}`, `{` + head + `,"users":[[1,1]]}`,
		`{` + head + `,"users":[["a","1"]]}`, `{` + head + `,"users":[["a",1],["a",2]]}`,
		`{` + head + `,"position":"x"}`, `{` + head + `,"position":"cDwx\n"}`, `{` + head + `,"position":7}`,
		`{` + head + `,"x":"` + strings.Repeat("a", MaxInlineBytes) + `"}`,
	} {
		_, _, err := ParseRecord(text, "snapshot-9")
		require.ErrorIs(t, err, errs.ErrCorrupt, "%.99s", text)
		require.ErrorContains(t, err, "snapshot-9")
	}
	_, _, err := ParseRecord(`{`+head+`,"later":{}}`, "snapshot-9")
	require.NoError(t, err)
}

func FuzzRecord(f *testing.F) {
	head := `{"version":1,"session":"` + uuidA + `","attempt":"` + uuidB + `"`
	f.Add(head + `,"users":[["a",1]],"position":"cDwx"}`)
	f.Add(head + `,"file":"` + uuidC + `.position"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, rest, err := ParseRecord(text, "s")
		if err != nil {
			require.ErrorIs(t, err, errs.ErrCorrupt)
			return
		}
		property, content, err := r.Marshal(PositionName(uuidC))
		require.NoError(t, err)
		back, rest2, err := ParseRecord(property, "s")
		require.NoError(t, err)
		if rest == "" && content != nil {
			require.NotEmpty(t, rest2)
			require.NoError(t, back.ParseFile(content, rest2))
		}
		require.Equal(t, len(r.Users), len(back.Users))
		require.Equal(t, r.Position, back.Position)
	})
}
