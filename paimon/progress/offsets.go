package progress

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/schema/jsontree"
)

// OffsetsProperty is the snapshot property that names the offsets file.
const OffsetsProperty = "realtime.offsets"

// Caps of an offsets file. An entry takes about 100 bytes.
const (
	MaxOffsetsBytes  = 16 << 20
	maxOffsetsValues = 1 << 20
	offsetsVersion   = 1
)

// Key identifies a partition-bucket.
type Key struct {
	Partition string // text of Canonical
	Bucket    int
}

// Canonical is the text of a partition that is equal for equal partitions
// whatever the order of the keys: escaped key=value pairs sorted by key and joined
// with '/', "" without partitions. keys and texts have the same length, keys
// differ.
func Canonical(keys, texts []string) string {
	pairs := make([]path.KV, len(keys))
	for i, key := range keys {
		pairs[i] = path.KV{Key: key, Value: texts[i]}
	}
	return canonical(sorted(pairs))
}

// KeyOf is the Key of a partition-bucket; the pairs may be in any order.
func KeyOf(partition []path.KV, bucket int) Key {
	return Key{Partition: canonical(sorted(partition)), Bucket: bucket}
}

func sorted(partition []path.KV) []path.KV {
	pairs := slices.Clone(partition)
	slices.SortFunc(pairs, func(a, b path.KV) int { return cmp.Compare(a.Key, b.Key) })
	return pairs
}

func canonical(pairs []path.KV) string {
	keys, texts := make([]string, len(pairs)), make([]string, len(pairs))
	for i, kv := range pairs {
		keys[i], texts[i] = kv.Key, kv.Value
	}
	return path.PartitionDir(keys, texts)
}

// Entry is the committed end of one partition-bucket.
type Entry struct {
	Partition []path.KV // sorted by key, owned by the Offsets: not to be changed
	Bucket    int
	End       int64 // exclusive: rows below it are in the snapshot
}

// Offsets is the committed progress of a snapshot. It never changes; nil is the
// empty map. The zero value is usable as well.
type Offsets struct {
	entries map[Key]Entry
}

// Range is what one commit adds to a partition-bucket: the offsets [Begin, End).
type Range struct {
	Partition []path.KV
	Bucket    int
	Begin     int64
	End       int64
}

// Len is the number of partition-buckets.
func (o *Offsets) Len() int {
	if o == nil {
		return 0
	}
	return len(o.entries)
}

// Get is the committed end of a partition-bucket; 0 and false when it has none.
func (o *Offsets) Get(partition []path.KV, bucket int) (int64, bool) {
	return o.GetKey(KeyOf(partition, bucket))
}

// GetKey is Get with a ready key.
func (o *Offsets) GetKey(key Key) (int64, bool) {
	if o == nil {
		return 0, false
	}
	e, ok := o.entries[key]
	return e.End, ok
}

// All visits the entries in the order of the file: by partition, then bucket.
func (o *Offsets) All() iter.Seq2[Key, Entry] {
	return func(yield func(Key, Entry) bool) {
		for _, key := range o.keys() {
			if !yield(key, o.entries[key]) {
				return
			}
		}
	}
}

func (o *Offsets) keys() []Key {
	if o == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(o.entries), func(a, b Key) int {
		if a.Partition != b.Partition {
			return comparePartitions(o.entries[a].Partition, o.entries[b].Partition)
		}
		return cmp.Compare(a.Bucket, b.Bucket)
	})
}

func comparePartitions(a, b []path.KV) int {
	return slices.CompareFunc(a, b, func(x, y path.KV) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Value, y.Value))
	})
}

// Equal says whether both hold the same ends.
func (o *Offsets) Equal(other *Offsets) bool {
	if o.Len() != other.Len() {
		return false
	}
	for key := range o.seq() {
		end, ok := other.GetKey(key)
		if !ok || end != o.entries[key].End {
			return false
		}
	}
	return true
}

func (o *Offsets) seq() map[Key]Entry {
	if o == nil {
		return nil
	}
	return o.entries
}

// Clone is an independent copy; With and Merge clone by themselves.
func (o *Offsets) Clone() *Offsets {
	c := &Offsets{entries: make(map[Key]Entry, o.Len())}
	maps.Copy(c.entries, o.seq())
	return c
}

// With is a copy in which one partition-bucket ends at end, wherever it ended
// before.
func (o *Offsets) With(partition []path.KV, bucket int, end int64) (*Offsets, error) {
	c := o.Clone()
	return c, c.put(partition, bucket, end)
}

// Without is a copy that lacks the partition-buckets that drop accepts: a dropped
// partition loses its progress.
func (o *Offsets) Without(drop func(Key) bool) *Offsets {
	c := o.Clone()
	maps.DeleteFunc(c.entries, func(key Key, _ Entry) bool { return drop(key) })
	return c
}

func (o *Offsets) put(partition []path.KV, bucket int, end int64) error {
	if bucket < 0 || bucket > math.MaxInt32 || end < 0 {
		return errs.Invalid("progress of bucket %d with the end offset %d", bucket, end)
	}
	pairs := sorted(partition)
	for i, kv := range pairs {
		if !utf8.ValidString(kv.Key) || !utf8.ValidString(kv.Value) {
			return errs.Invalid("progress of a partition with text that is not UTF-8: %q = %q", kv.Key, kv.Value)
		}
		if i > 0 && kv.Key == pairs[i-1].Key {
			return errs.Invalid("progress of a partition that names the key %q twice", kv.Key)
		}
	}
	o.entries[Key{Partition: canonical(pairs), Bucket: bucket}] = Entry{Partition: pairs, Bucket: bucket, End: end}
	return nil
}

// Merge is a copy with the ranges of one commit added. Ranges may come in any
// order and several may belong to one partition-bucket; none may be empty,
// overlap another or begin below the committed end. Gaps are allowed, because
// callers may number rows themselves. ErrInvalid names the range, nothing is
// changed then.
func (o *Offsets) Merge(ranges []Range) (*Offsets, error) {
	ordered := slices.Clone(ranges)
	for i := range ordered {
		ordered[i].Partition = sorted(ordered[i].Partition)
	}
	slices.SortFunc(ordered, func(a, b Range) int {
		return cmp.Or(comparePartitions(a.Partition, b.Partition),
			cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Begin, b.Begin))
	})
	c := o.Clone()
	for _, r := range ordered {
		key := KeyOf(r.Partition, r.Bucket)
		if r.Begin < 0 || r.Begin >= r.End {
			return nil, errs.Invalid("progress range [%d, %d) of bucket %d in partition %q is empty or negative",
				r.Begin, r.End, r.Bucket, key.Partition)
		}
		if end, _ := c.GetKey(key); r.Begin < end {
			return nil, errs.Invalid("progress range [%d, %d) of bucket %d in partition %q begins below the end %d",
				r.Begin, r.End, r.Bucket, key.Partition, end)
		}
		if err := c.put(r.Partition, r.Bucket, r.End); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Parse reads an offsets file; file is its name for errors.
func Parse(data []byte, file string) (*Offsets, error) {
	root, err := jsontree.Parse(data, file, jsontree.Limits{
		Bytes: MaxOffsetsBytes, Depth: 16, Values: maxOffsetsValues,
	})
	if err != nil {
		return nil, err
	}
	if err := checkVersion(root, offsetsVersion); err != nil {
		return nil, err
	}
	list, err := root.Need("offsets")
	if err != nil {
		return nil, err
	}
	items, err := list.Items()
	if err != nil {
		return nil, err
	}
	o := &Offsets{entries: make(map[Key]Entry, len(items))}
	for _, item := range items {
		if err := o.parseEntry(item); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// checkVersion refuses every version but the one that is known.
func checkVersion(root *jsontree.Node, known int64) error {
	version, err := root.NeedInt("version", math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	if version != known {
		return root.Corrupt("version is %d, only %d is known", version, known)
	}
	return nil
}

func (o *Offsets) parseEntry(item *jsontree.Node) error {
	part, err := item.Need("partition")
	if err != nil {
		return err
	}
	keys, vals, err := part.Members()
	if err != nil {
		return err
	}
	pairs := make([]path.KV, len(keys))
	for i, key := range keys {
		pairs[i].Key = key
		if pairs[i].Value, err = vals[i].Str(); err != nil {
			return err
		}
	}
	bucket, err := item.NeedInt("bucket", 0, math.MaxInt32)
	if err != nil {
		return err
	}
	end, err := item.NeedInt("offset", 0, math.MaxInt64)
	if err != nil {
		return err
	}
	if _, dup := o.Get(pairs, int(bucket)); dup {
		return item.Corrupt("partition and bucket appear twice")
	}
	return o.put(pairs, int(bucket), end)
}

type jsonOffsets struct {
	Version int         `json:"version"`
	Offsets []jsonEntry `json:"offsets"`
}

type jsonEntry struct {
	Partition map[string]string `json:"partition"`
	Bucket    int               `json:"bucket"`
	Offset    int64             `json:"offset"`
}

// Marshal writes an offsets file. ErrInvalid when it would be too large to be
// read again.
func (o *Offsets) Marshal() ([]byte, error) {
	doc := jsonOffsets{Version: offsetsVersion, Offsets: make([]jsonEntry, 0, o.Len())}
	values := 4
	for _, e := range o.All() {
		part := make(map[string]string, len(e.Partition))
		for _, kv := range e.Partition {
			part[kv.Key] = kv.Value
		}
		values += 4 + len(part)
		doc.Offsets = append(doc.Offsets, jsonEntry{Partition: part, Bucket: e.Bucket, Offset: e.End})
	}
	data, err := encode(doc, "    ")
	if err != nil {
		return nil, err
	}
	if len(data) > MaxOffsetsBytes || values > maxOffsetsValues {
		return nil, errs.Invalid("progress of %d partition-buckets takes %d bytes, at most %d are possible",
			o.Len(), len(data), MaxOffsetsBytes)
	}
	return data, nil
}

func encode(doc any, indent string) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(doc); err != nil {
		return nil, errs.Invalid("progress has no text: %v", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
