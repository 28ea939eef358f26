package manifest_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
)

func TestIndexManifestsOfGoldenTablesHoldTheExpectedEntries(t *testing.T) {
	files := 0
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		text, err := os.ReadFile(filepath.Join(g.root, "..", "expected", "snapshots.json"))
		require.NoError(t, err)
		var expected []struct {
			Name                 string         `json:"name"`
			IndexManifestEntries map[string]int `json:"indexManifestEntries"`
		}
		require.NoError(t, json.Unmarshal(text, &expected))
		snaps := g.snapshots()
		for _, want := range expected {
			s := snaps[want.Name]
			if s == nil || s.IndexManifest == "" {
				continue
			}
			entries, err := manifest.ReadIndex(g.read("manifest", s.IndexManifest), s.IndexManifest)
			if errors.Is(err, errs.ErrUnsupported) {
				continue
			}
			require.NoError(t, err)
			got := map[string]int{}
			for _, e := range entries {
				got[e.Type]++
				if e.Type == manifest.IndexDeletionVectors {
					require.EqualValues(t, e.Rows, len(e.Vectors))
				}
			}
			require.Equal(t, want.IndexManifestEntries, got)
			files++
		}
	})
	t.Logf("%d index manifests", files)
}

func FuzzIndexManifest(f *testing.F) {
	f.Add([]byte("Obj\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := manifest.ReadIndex(data, "i"); err != nil {
			require.True(t, errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrUnsupported))
		}
	})
}
