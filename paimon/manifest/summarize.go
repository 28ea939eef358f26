package manifest

import (
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// SummarizeList builds the manifest-list record of a manifest (FORMAT §4.3) of
// the given name and size in bytes: counts, full partition statistics, the highest
// schema id, ranges of bucket and level, and the row-id range when every entry has
// row ids. partTypes are the types of the partition fields. errs.ErrCorrupt when a
// partition does not decode, errs.ErrInvalid when there are no entries.
func SummarizeList(name string, size int64, entries []Entry, partTypes []schema.Type) (ListEntry, error) {
	if len(entries) == 0 {
		return ListEntry{}, errs.Invalid("summarize manifest %q: it has no entries", name)
	}
	out := ListEntry{Name: name, Size: size, SchemaID: entries[0].File.SchemaID}
	minBucket, maxBucket := entries[0].Bucket, entries[0].Bucket
	minLevel, maxLevel := entries[0].File.Level, entries[0].File.Level
	stats := newRange(partTypes)
	var last []byte
	var vals []row.Value
	for i := range entries {
		e := &entries[i]
		if e.Kind == Delete {
			out.Deleted++
		} else {
			out.Added++
		}
		out.SchemaID = max(out.SchemaID, e.File.SchemaID)
		minBucket, maxBucket = min(minBucket, e.Bucket), max(maxBucket, e.Bucket)
		minLevel, maxLevel = min(minLevel, e.File.Level), max(maxLevel, e.File.Level)
		if len(partTypes) == 0 {
			continue
		}
		// Entries of one commit come partition by partition.
		if last == nil || string(last) != string(e.Partition) {
			v, err := row.Decode(partTypes, e.Partition)
			if err != nil {
				return ListEntry{}, err
			}
			vals, last = v, e.Partition
		}
		stats.add(vals)
	}
	out.MinBucket, out.MaxBucket = &minBucket, &maxBucket
	out.MinLevel, out.MaxLevel = &minLevel, &maxLevel
	out.MinRowID, out.MaxRowID = rowIDs(entries)
	var err error
	out.PartitionStats, err = stats.stats()
	return out, err
}

// valueRange collects minimum, maximum and null count of partition fields.
type valueRange struct {
	types    []schema.Type
	min, max []row.Value
	nulls    []int64
}

func newRange(types []schema.Type) *valueRange {
	n := len(types)
	return &valueRange{types, make([]row.Value, n), make([]row.Value, n), make([]int64, n)}
}

func (r *valueRange) add(vals []row.Value) {
	for i, v := range vals {
		if v == nil {
			r.nulls[i]++
			continue
		}
		if r.min[i] == nil || row.CompareValue(r.types[i], v, r.min[i]) < 0 {
			r.min[i] = v
		}
		if r.max[i] == nil || row.CompareValue(r.types[i], v, r.max[i]) > 0 {
			r.max[i] = v
		}
	}
}

func (r *valueRange) stats() (Stats, error) {
	lo, err := row.Encode(r.types, r.min)
	if err != nil {
		return Stats{}, err
	}
	hi, err := row.Encode(r.types, r.max)
	return Stats{Arity: len(r.types), Min: lo, Max: hi, NullCounts: r.nulls}, err
}

// rowIDs is the range of row ids, nil unless every entry has a first one.
func rowIDs(entries []Entry) (lo, hi *int64) {
	for i := range entries {
		first := entries[i].File.FirstRowID
		if first == nil {
			return nil, nil
		}
		from, to := *first, *first+entries[i].File.Rows-1
		if lo == nil {
			lo, hi = &from, &to
			continue
		}
		*lo, *hi = min(*lo, from), max(*hi, to)
	}
	return lo, hi
}
