package manifest

import (
	"errors"
	"slices"

	"github.com/twmb/avro"

	"github.com/tideline-db/tideline/internal/errs"
)

// Read decodes a manifest, any generation of its schema. The entries share
// memory with data or with blocks decoded from it: neither may be changed.
// errs.ErrCorrupt for damage, errs.ErrUnsupported for ORC and Parquet manifests.
func Read(data []byte, file string) ([]Entry, error) {
	return readAll(data, file, manifestCodec, (*wireEntry).entry)
}

// ReadList decodes a manifest list; memory and errors are as with Read.
func ReadList(data []byte, file string) ([]ListEntry, error) {
	return readAll(data, file, listCodec, (*wireList).entry)
}

// recordCodec ties the schema that this package writes to the fields that a
// foreign schema must have.
type recordCodec struct {
	text   string
	parsed *avro.Schema
	needs  map[string][]string // fields by path: "" for the record, "_FILE" for its member
}

var (
	manifestCodec = recordCodec{manifestSchema, avro.MustParse(manifestSchema),
		map[string][]string{"": entryFields, "_FILE": fileFields}}
	listCodec = recordCodec{listSchema, avro.MustParse(listSchema), map[string][]string{"": listFields}}
)

// schema gives the parsed writer schema of a file.
func (r *recordCodec) schema(text string) (*avro.Schema, error) {
	if text == r.text {
		return r.parsed, nil
	}
	s, err := avro.Parse(text)
	if err != nil {
		return nil, err
	}
	for path, names := range r.needs {
		n := recordNode(s.Root())
		if path != "" && n != nil {
			n = recordNode(fieldNode(n, path))
		}
		if n == nil {
			return nil, errors.New("the schema is no record")
		}
		for _, name := range names {
			if fieldNode(n, name) == nil {
				return nil, errors.New("the schema has no field " + name)
			}
		}
	}
	return s, nil
}

// recordNode unwraps ["null", record], which old writers put around records.
func recordNode(n *avro.SchemaNode) *avro.SchemaNode {
	if n != nil && n.Type == "union" && len(n.Branches) == 2 && n.Branches[0].Type == "null" {
		n = &n.Branches[1]
	}
	if n == nil || n.Type != "record" {
		return nil
	}
	return n
}

func fieldNode(n *avro.SchemaNode, name string) *avro.SchemaNode {
	i := slices.IndexFunc(n.Fields, func(f avro.SchemaField) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &n.Fields[i].Type
}

// minRecordBytes is a lower bound for records that have rows; it only sizes the
// first allocation.
const minRecordBytes = 40

// readAll decodes every record of a container. A panic of the Avro library over
// hostile bytes becomes errs.ErrCorrupt.
func readAll[W, E any](data []byte, file string, codec recordCodec, convert func(*W) (E, error)) (out []E, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, errs.Corrupt(file, -1, "the Avro decoder gave up: %v", p)
		}
	}()
	c, err := openContainer(data, file)
	if err != nil {
		return nil, err
	}
	defer c.codecs.close()
	s, err := codec.schema(c.schema)
	if err != nil {
		return nil, errs.Corrupt(file, 0, "schema: %v", err)
	}
	opts := []avro.Opt{avro.SkipUnknown(), avro.AliasInput()}
	var w, zero W
	for {
		count, block, ok, err := c.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		// Not by the count alone, which may be hostile.
		out = slices.Grow(out, int(min(count, int64(len(block)/minRecordBytes))))
		for k := range count {
			w = zero
			rest, err := s.Decode(block, &w, opts...)
			if err != nil {
				return nil, c.corrupt("record %d of the block before: %v", k, err)
			}
			e, err := convert(&w)
			if err != nil {
				return nil, c.corrupt("record %d of the block before: %v", k, reason(err))
			}
			out, block = append(out, e), rest
		}
		if len(block) > 0 {
			return nil, c.corrupt("%d bytes behind the last record of the block before", len(block))
		}
	}
}

// reason takes the sentence out of an error that does not know its file.
func reason(err error) string {
	var ce *errs.CorruptError
	if errors.As(err, &ce) {
		return ce.Reason
	}
	return err.Error()
}
