package conformance

// What the other implementations cannot do or do wrong, each with its reason. An
// entry that no longer holds fails the test that reads it.

// goldenException is why an oracle does not give the expected rows of a reference
// table; "" when it must.
func goldenException(oracle, table string) string {
	return goldenExceptions[oracle][table]
}

var goldenExceptions = map[string]map[string]string{
	"java":   {},
	"python": {},
}
