package conformance
import ("testing";"fmt";"os";"github.com/stretchr/testify/require")
func TestZZ(t *testing.T) {
	java := startOracles(t)[0]
	for _, c := range Cases(seed(t) + 200) {
		if c.Name != "append-all-types" { continue }
		for i, e := range []Engine{java, &ours{}} {
		w := fmt.Sprintf("/tmp/zz%d", i); os.RemoveAll(w)
		require.NoError(t, writeCase(w, c, e))
		visible := c.Visible(len(c.Commits))
		for _, col := range []string{"c_binary","c_varbinary","c_bytes","c_string","c_char","c_varchar","c_dec38"} {
			bad := 0
			for _, like := range visible {
				want, value, err := Select(c.Schema, visible, col, like)
				require.NoError(t, err)
				got, err := java.Find(w, table, col, value)
				require.NoError(t, err)
				d, _ := Diff(c.Schema, "w", want, "g", got)
				if d != "" { bad++; if bad == 1 {fmt.Println(value, d)} }
			}
			fmt.Println(e.Name(), col, bad, "of", len(visible))
		}
		files, _ := java.Dump(w, "default.t$files", 0)
		fmt.Println(len(files), files[0])
		}
	}
}
