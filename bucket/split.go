package bucket

import (
	"fmt"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/paimon/row"
)

// group is the rows of a batch that go to one partition-bucket.
type group struct {
	partition *Part // describes the partition
	bucket    int32
	number    int32
	count     int     // rows; 0 for the only group of a batch
	idx       []int32 // rows in the order of the part; nil: all rows as they came
	perm      []int32 // place of each row of idx among the rows of the group as they came; nil: as they came
	small     bool
}

func (g *group) rows(all int) int {
	if g.count == 0 {
		return all
	}
	return g.count
}

type groupKey struct {
	partition *Part
	bucket    int32
}

// split fills groups. A batch that goes to one partition-bucket is not split.
func (p *Preparer) split(s *scratch, rows int) error {
	s.groups = s.groups[:0]
	first := unpartitioned
	if len(s.parts) > 0 {
		var err error
		if first, err = p.partitionOf(s, 0); err != nil {
			return err
		}
	}
	if p.t.buckets > 1 {
		s.buckets = resize(s.buckets, rows)
		row.Buckets(s.keys, p.t.keyTypes, p.t.buckets, s.buckets)
	}
	if done := p.oneBucket(s, rows) && len(s.parts) == 0; done || rows == 1 {
		s.groups = append(s.groups, group{partition: first, bucket: p.bucketAt(s, 0)})
		return nil
	}
	clear(s.byID)
	s.groupOf = resize(s.groupOf, rows)
	here, last := first, int32(-1)
	for i := range rows {
		if len(s.parts) > 0 && i > 0 {
			var err error
			if here, err = p.nextPartition(s, here, i); err != nil {
				return err
			}
		}
		if last >= 0 && s.groups[last].partition == here && s.groups[last].bucket == p.bucketAt(s, i) {
			s.groups[last].count++
			s.groupOf[i] = last
			continue
		}
		key := groupKey{here, p.bucketAt(s, i)}
		at, ok := s.byID[key]
		if !ok {
			at = int32(len(s.groups))
			s.byID[key] = at
			s.groups = append(s.groups, group{partition: here, bucket: key.bucket, number: at})
		}
		s.groups[at].count++
		s.groupOf[i], last = at, at
	}
	if len(s.groups) == 1 {
		s.groups[0].count = 0
		return nil
	}
	s.identity(rows)
	return nil
}

func (p *Preparer) bucketAt(s *scratch, i int) int32 {
	if p.t.buckets > 1 {
		return s.buckets[i]
	}
	return 0
}

func (p *Preparer) oneBucket(s *scratch, rows int) bool {
	if p.t.buckets > 1 {
		for _, b := range s.buckets[1:rows] {
			if b != s.buckets[0] {
				return false
			}
		}
	}
	return true
}

// identity gives every group its rows as they came, and every row its rank in
// its group.
func (s *scratch) identity(rows int) {
	s.order = resize(s.order, 2*rows)
	s.rank = resize(s.rank, rows)
	s.carve(rows)
	for i, g := range s.groupOf[:rows] {
		group := &s.groups[g]
		s.rank[i] = int32(len(group.idx))
		group.idx = append(group.idx, int32(i))
	}
}

// carve cuts the memory of the rows and permutations of all groups out of order.
func (s *scratch) carve(rows int) {
	at := 0
	for g := range s.groups {
		group := &s.groups[g]
		group.idx = s.order[at : at : at+group.count]
		at += group.count
	}
	at = rows
	for g := range s.groups {
		group := &s.groups[g]
		group.perm = s.order[at : at : at+group.count]
		at += group.count
	}
}

// distribute gives the groups that are not small their rows in the order of
// perm, the order of the whole batch.
func (s *scratch) distribute(perm []int32, rows int) {
	s.carve(rows)
	for i, g := range s.groupOf[:rows] {
		if group := &s.groups[g]; group.small {
			group.idx = append(group.idx, int32(i))
		}
	}
	for _, i := range perm {
		if group := &s.groups[s.groupOf[i]]; !group.small {
			group.idx = append(group.idx, i)
			group.perm = append(group.perm, s.rank[i])
		}
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// unpartitioned describes the partition of a table without partition keys.
var unpartitioned = &Part{PartitionRow: row.EmptyRow}

// knownPartitionsMax bounds the partitions that scratch memory remembers.
const knownPartitionsMax = 1024

// nextPartition is partitionOf, quick for a row of the same partition as the one
// before it.
func (p *Preparer) nextPartition(s *scratch, before *Part, i int) (*Part, error) {
	s.encoded = row.EncodeColumns(s.parts, p.t.partTypes, i, s.encoded[:0])
	if string(s.encoded) == string(before.PartitionRow) {
		return before, nil
	}
	return p.describePartition(s, i)
}

func (p *Preparer) partitionOf(s *scratch, i int) (*Part, error) {
	s.encoded = row.EncodeColumns(s.parts, p.t.partTypes, i, s.encoded[:0])
	return p.describePartition(s, i)
}

// describePartition finds or computes the description of the partition whose
// encoded row is in s.encoded.
func (p *Preparer) describePartition(s *scratch, i int) (*Part, error) {
	if known := s.known[string(s.encoded)]; known != nil {
		return known, nil
	}
	part := &Part{
		PartitionRow:    append([]byte(nil), s.encoded...),
		PartitionValues: make([]row.Value, len(s.parts)),
		PartitionKVs:    make([]path.KV, len(s.parts)),
	}
	keys, texts := p.t.Schema.PartitionKeys, make([]string, len(s.parts))
	for k, c := range s.parts {
		v := row.ValueAt(c, p.t.partTypes[k], i)
		part.PartitionValues[k] = v
		text, err := p.partitionText(k, v)
		if err != nil {
			return nil, fmt.Errorf("column %s, row %d; nothing was written: %w", keys[k], i, err)
		}
		texts[k] = text
		part.PartitionKVs[k] = path.KV{Key: keys[k], Value: text}
	}
	if err := path.CheckPartition(keys, texts); err != nil {
		return nil, fmt.Errorf("row %d; nothing was written: %w", i, err)
	}
	part.ID.Partition = progress.Canonical(keys, texts)
	if len(s.known) >= knownPartitionsMax {
		clear(s.known)
	}
	s.known[string(part.PartitionRow)] = part
	return part, nil
}

// partitionText is the directory text of one partition value. A value that is
// not null but has the text of null would put its rows into null's directory,
// where nobody could tell the two apart.
func (p *Preparer) partitionText(k int, v row.Value) (string, error) {
	o := &p.t.Options
	text, err := path.PartitionText(p.t.partTypes[k], v, o.PartitionLegacyName, o.PartitionDefaultName)
	if err != nil {
		return "", err
	}
	if v != nil && text == o.PartitionDefaultName {
		return "", errs.Invalid("partition value %q would share the directory %s with null", v, text)
	}
	return text, nil
}
