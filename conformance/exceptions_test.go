package conformance

// What the other implementations cannot do or do wrong, each with its reason. An
// entry that no longer holds fails the test that reads it.

// kills starts the reason of a table whose reading ends the oracle's process; it
// is not tried.
const kills = "ends the process: "

// goldenException is why an oracle does not give the expected rows of a reference
// table; "" when it must.
func goldenException(oracle, table string) string {
	return goldenExceptions[oracle][table]
}

const (
	externalFiles   = "the data files lie at an absolute path of the machine that wrote them"
	sequenceGroups  = "pypaimon refuses sequence groups"
	castsDiffer     = "pypaimon casts otherwise than Java when a column's type was changed"
	oldMetadata     = "pypaimon needs metadata fields that this generation of manifests lacks"
	ignoredRetracts = "pypaimon refuses ignore-retract"
)

var goldenExceptions = map[string]map[string]string{
	"java": {
		"orc-pk-dv-external":       externalFiles,
		"pq-pk-dv-indata-external": externalFiles,
	},
	"python": {
		"java13-agg-avro-wide":              ignoredRetracts,
		"java13-append-orc-nullpart":        castsDiffer,
		"java13-dynamic-avro-rowkind":       castsDiffer,
		"java13-firstrow-orc-lz4":           castsDiffer,
		"java13-partial-avro-casts":         sequenceGroups,
		"java13-partial-avro-groups-remove": sequenceGroups,
		"java13-partial-orc-groups":         sequenceGroups,
		"java13-partial-orc-stripes":        sequenceGroups,
		"orc-null-map-key":                  kills + "Arrow refuses a map with a null key",
		"pq-evolve-cast":                    castsDiffer,
		"pq-pk-dv-8snap":                    oldMetadata,
		"pq-pk-dv-indata-external":          externalFiles,
	},
}

// cannotWrite is why an engine cannot write a case; "" when it must.
func cannotWrite(engine string, c Case) string {
	if engine == "python" && c.HasDeletes() {
		return "pypaimon writes no row kinds"
	}
	if engine == "python" && c.Name == "append-nanos-multiset" {
		return "pypaimon has no MULTISET"
	}
	return ""
}

// cannotRead is why an engine cannot read a case of a writer; "" when it must.
func cannotRead(reader, writer string, c Case) string {
	if reader == "python" && c.Name == "append-nanos-multiset" {
		return "pypaimon has no MULTISET"
	}
	return ""
}
