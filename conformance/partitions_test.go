package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

// partitionCase writes each partition value once a commit.
func partitionCase(name string, values ...any) Case {
	c := Case{Name: name, Schema: Schema{
		Fields:        []Field{fieldOf("p", "STRING"), fieldOf("k", "BIGINT"), fieldOf("v", "STRING")},
		PartitionKeys: []string{"p"}, PrimaryKeys: []string{}, Options: map[string]string{"bucket": "1", "bucket-key": "k"},
	}}
	for i := range c.Schema.Fields {
		c.Schema.Fields[i].ID = i
	}
	for round := range 3 {
		var rows []Row
		for i, v := range values {
			rows = append(rows, Row{Kind: "+I", JSON: fmt.Sprintf(`{"p":%s,"k":%d,"v":%s}`, text(v), round*100+i, text(fmt.Sprint(v)))})
		}
		c.Commits = append(c.Commits, rows)
	}
	return c
}

// The partition values come from the manifests and not from the names of the
// directories, which are escaped.
func TestPartitionValuesThatNeedEscaping(t *testing.T) {
	c := partitionCase("escapes", "null", "a/b", "p=1", "50%", "%41", "x:y", "é", "日本", "quote\"d", "back\\slash",
		"#", "{}", "tab\t", "..", "a b", " lead", "plain")
	for _, writer := range engines(t) {
		t.Run(writer.Name(), func(t *testing.T) {
			requireWrittenAndRead(t, c, writer)
		})
	}
}

// Null, empty and blank values share a directory and are different values all the
// same. Java writes them. We write null only: the others would share one bucket
// with it, whose offsets are kept by the name of the directory.
func TestPartitionValuesThatShareADirectory(t *testing.T) {
	all := engines(t)
	requireWrittenAndRead(t, partitionCase("shared-directory", nil, "", " ", "   ", "__DEFAULT_PARTITION__", "plain"), all[0])
	for _, our := range ourEngines(t) {
		requireWrittenAndRead(t, partitionCase("null-partition", nil, "plain"), our)
		for _, v := range []string{"", " ", "__DEFAULT_PARTITION__"} {
			require.ErrorIs(t, writeCase(t.TempDir(), partitionCase("refused", v), our), tideline.ErrInvalid)
		}
	}
}

func requireWrittenAndRead(t *testing.T, c Case, writer Engine) {
	t.Helper()
	w := t.TempDir()
	require.NoError(t, writeCase(w, c, writer))
	for _, reader := range engines(t) {
		requireCase(t, w, c, reader, writer.Name())
	}
}
