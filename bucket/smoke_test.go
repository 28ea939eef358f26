package bucket

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func sprint(seq int64, kind int8, cells []string) string {
	return fmt.Sprintf("%d %d %s", seq, kind, strings.Join(cells, "|"))
}

func TestSmallBatchesBecomeOneSortedRun(t *testing.T) {
	table := keyed(t)
	s := newState(table)
	for i, json := range []string{
		`[{"k":5,"a":1,"s":"five"},{"k":2,"a":null,"s":"two"}]`,
		`[{"k":3,"a":3,"s":null}]`,
	} {
		p := prepare(t, table, json, nil, nil)
		require.Len(t, p.Parts, 1)
		require.True(t, p.Parts[0].Small)
		require.NoError(t, s.Append(p.Parts[0], int64(i+1)))
	}
	v := s.View()
	runs, err := v.Runs(0, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"1 0 2|(null)|two", "2 0 3|3|(null)", "0 0 5|1|five"}, lines(t, runs))
	runs, err = v.Runs(0, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"1 0 2|(null)|two", "0 0 5|1|five"}, lines(t, runs))
}
