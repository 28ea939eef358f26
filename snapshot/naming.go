package snapshot

import (
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// naming turns partition rows into the text of their values, which names their
// directory and is the identity of a partition for progress and in memory.
type naming struct {
	keys  []string
	types []schema.Type
	opts  schema.Options
}

func newNaming(s *schema.Schema) (*naming, error) {
	opts, err := schema.ParseOptions(s)
	if err != nil {
		return nil, err
	}
	return &naming{keys: s.PartitionKeys, types: partitionTypes(s), opts: opts}, nil
}

func (n *naming) decode(data []byte) (*partition, error) {
	values, err := row.Decode(n.types, data)
	if err != nil {
		return nil, err
	}
	p := &partition{values: values, kvs: make([]path.KV, len(values))}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i], err = path.PartitionText(n.types[i], v, n.opts.PartitionLegacyName, n.opts.PartitionDefaultName)
		if err != nil {
			return nil, err
		}
		p.kvs[i] = path.KV{Key: n.keys[i], Value: texts[i]}
	}
	p.text = progress.Canonical(n.keys, texts)
	return p, nil
}

func (n *naming) key(partition []byte, bucket int) (progress.Key, error) {
	p, err := n.decode(partition)
	if err != nil {
		return progress.Key{}, err
	}
	return p.key(bucket), nil
}

func (p *partition) key(bucket int) progress.Key {
	return progress.Key{Partition: p.text, Bucket: bucket}
}

// sameText reports whether a partition row has the text. A row that cannot be
// decoded is taken to have it: it is then read and reported.
func (n *naming) sameText(partition []byte, text string) bool {
	p, err := n.decode(partition)
	return err != nil || p.text == text
}
