package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
)

const snapshotText = `{
  "version" : 3,
  "uuid" : "u",
  "id" : 7,
  "schemaId" : 1,
  "baseManifestList" : "b",
  "baseManifestListSize" : 1003,
  "deltaManifestList" : "d",
  "deltaManifestListSize" : 1114,
  "changelogManifestList" : "c",
  "changelogManifestListSize" : 9,
  "indexManifest" : "i",
  "commitUser" : "a \"user\" <&>",
  "writerVersion" : "w",
  "commitIdentifier" : 9223372036854775807,
  "commitKind" : "APPEND",
  "timeMillis" : 1767225600000,
  "totalRecordCount" : 5,
  "deltaRecordCount" : -2,
  "changelogRecordCount" : 0,
  "watermark" : -9223372036854775808,
  "statistics" : "stat-1",
  "properties" : {
    "a" : "1",
    "b" : "2"
  },
  "nextRowId" : 0,
  "operation" : "WRITE"
}`

func TestSnapshotKeepsEveryKey(t *testing.T) {
	s, err := manifest.ParseSnapshot([]byte(snapshotText), "snapshot-7")
	require.NoError(t, err)
	require.Equal(t, int64(9223372036854775807), s.CommitIdentifier)
	require.Equal(t, `a "user" <&>`, s.CommitUser)
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, s.Properties)
	require.Equal(t, snapshotText, string(s.Marshal()))
}

func TestSnapshotIgnoresUnknownKeysAndNulls(t *testing.T) {
	text := strings.Replace(snapshotText, `"operation" : "WRITE"`, `"operation" : null, "logOffsets" : {}, "ID" : 9, "new" : [1.5]`, 1)
	text = strings.Replace(text, `"nextRowId" : 0`, `"nextRowId" : null`, 1)
	s, err := manifest.ParseSnapshot([]byte(text), "snapshot-7")
	require.NoError(t, err)
	require.Equal(t, int64(7), s.ID)
	require.Nil(t, s.NextRowID)
	require.Empty(t, s.Operation)
}

func TestSnapshotNamesTheRequiredKeyThatIsMissing(t *testing.T) {
	for _, key := range []string{"id", "schemaId", "baseManifestList", "deltaManifestList", "commitUser",
		"commitIdentifier", "commitKind", "timeMillis", "totalRecordCount", "deltaRecordCount"} {
		for _, text := range []string{
			strings.Replace(snapshotText, `"`+key+`"`, `"x`+key+`"`, 1),
			strings.Replace(snapshotText, `"`+key+`" : `, `"`+key+`" : null, "x" : `, 1),
		} {
			_, err := manifest.ParseSnapshot([]byte(text), "snapshot-7")
			require.ErrorIs(t, err, errs.ErrCorrupt)
			require.ErrorContains(t, err, "required key "+key)
			require.ErrorContains(t, err, "snapshot-7")
		}
	}
}

func TestSnapshotRefusesDamage(t *testing.T) {
	replace := func(old, new string) string {
		require.Contains(t, snapshotText, old)
		return strings.Replace(snapshotText, old, new, 1)
	}
	for name, text := range map[string]string{
		"empty":             "",
		"null":              "null",
		"an array":          "[]",
		"cut off":           snapshotText[:200],
		"not UTF-8":         replace(`"u"`, "\"\xff\""),
		"fraction":          replace(`: 1003`, `: 1003.5`),
		"exponent":          replace(`: 1003`, `: 1e3`),
		"above 64 bits":     replace(`: 9223372036854775807`, `: 9223372036854775808`),
		"number as text":    replace(`: 1767225600000`, `: "1767225600000"`),
		"text as number":    replace(`: "APPEND"`, `: 1`),
		"id 0":              replace(`: 7`, `: 0`),
		"path as list name": replace(`"b"`, `"../b"`),
		"empty list name":   replace(`"b"`, `""`),
		"properties list":   replace("{\n    \"a\" : \"1\",\n    \"b\" : \"2\"\n  }", "[]"),
		"too large":         snapshotText + strings.Repeat(" ", manifest.MaxSnapshotBytes),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.ParseSnapshot([]byte(text), "snapshot-7")
			require.ErrorIs(t, err, errs.ErrCorrupt)
		})
	}
	_, err := manifest.ParseSnapshot([]byte(replace(`"version" : 3`, `"version" : 4`)), "snapshot-7")
	require.ErrorIs(t, err, errs.ErrUnsupported)
	s, err := manifest.ParseSnapshot([]byte(replace(`"version" : 3,`, ``)), "snapshot-7")
	require.NoError(t, err)
	require.Equal(t, 1, s.Version)
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(snapshotText))
	f.Add([]byte(`{"version":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := manifest.ParseSnapshot(data, "s")
		if err != nil {
			return
		}
		back, err := manifest.ParseSnapshot(s.Marshal(), "s")
		require.NoError(t, err)
		if len(s.Properties) == 0 {
			s.Properties = nil
		}
		require.Equal(t, s, back)
	})
}
