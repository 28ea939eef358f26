package schema

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
)

// checkFields verifies types, and that names and ids are unique and ids lie in
// [0, highest]. Ids are unique over all columns and everything nested in them.
func checkFields(fields []Field, highest int) error {
	names := make(map[string]bool, len(fields))
	for _, f := range fields {
		if names[f.Name] {
			return errs.Invalid("two columns are named %q", f.Name)
		}
		names[f.Name] = true
		if err := f.Type.validate(0); err != nil {
			return errs.Invalid("column %q: %v", f.Name, err)
		}
	}
	ids := make(map[int]string)
	var fail error
	walkFields(fields, func(f *Field) {
		switch other, dup := ids[f.ID]; {
		case fail != nil:
		case dup:
			fail = errs.Invalid("fields %q and %q have the same id %d", other, f.Name, f.ID)
		case f.ID < 0 || f.ID > maxFieldID:
			fail = errs.Invalid("field %q has the id %d, which is not between 0 and %d", f.Name, f.ID, maxFieldID)
		case f.ID > highest:
			fail = errs.Invalid("field %q has the id %d above highestFieldId %d", f.Name, f.ID, highest)
		}
		ids[f.ID] = f.Name
	})
	return fail
}

// walkFields visits every field depth-first in the order in which ids are
// assigned: a column, then the ROW members inside its type.
func walkFields(fields []Field, visit func(*Field)) {
	for i := range fields {
		visit(&fields[i])
		walkType(&fields[i].Type, visit)
	}
}

func walkType(t *Type, visit func(*Field)) {
	if t.Key != nil {
		walkType(t.Key, visit)
	}
	if t.Elem != nil {
		walkType(t.Elem, visit)
	}
	walkFields(t.Fields, visit)
}

// checkKeys verifies that the key lists name columns, each once, and that
// something is left of the primary key below the partition.
func (s *Schema) checkKeys() error {
	lists := []struct {
		what  string
		names []string
	}{{"partition key", s.PartitionKeys}, {"primary key", s.PrimaryKeys}}
	for _, list := range lists {
		for i, name := range list.names {
			if s.FieldIndex(name) < 0 {
				return errs.Invalid("%s %q is not a column", list.what, name)
			}
			if slices.Contains(list.names[:i], name) {
				return errs.Invalid("%s names %q twice", list.what, name)
			}
		}
	}
	if s.IsPrimaryKey() && len(s.TrimmedKey()) == 0 {
		return errs.Invalid("the primary key %v has no column besides the partition keys", s.PrimaryKeys)
	}
	return nil
}

// New builds the first schema of a table by the rules of FORMAT §2.4. A schema
// that New returns passes CheckWrite: what this engine cannot write is refused
// here with ErrUnsupported, everything else that is wrong with ErrInvalid.
//
// Field ids are assigned depth-first from 0 if they are not all different,
// otherwise kept. Primary-key columns become NOT NULL, as Java does it. The
// options primary-key and partition are moved to the key lists and not stored;
// path, branch and auto-create belong to a session and are refused. fields,
// lists and options are copied. nowMillis is the creation time in epoch ms.
func New(fields []Field, partition, primary []string, options map[string]string, nowMillis int64) (*Schema, error) {
	s := &Schema{
		Version: CurrentVersion, Fields: cloneFields(fields), PartitionKeys: slices.Clone(partition),
		PrimaryKeys: slices.Clone(primary), Options: maps.Clone(options), TimeMillis: nowMillis,
	}
	if s.Options == nil {
		s.Options = map[string]string{}
	}
	if err := s.moveKeyOptions(); err != nil {
		return nil, err
	}
	if len(s.Fields) == 0 {
		return nil, errs.Invalid("a table needs at least one column")
	}
	if err := checkNames(s.Fields); err != nil {
		return nil, err
	}
	s.assignIDs()
	if err := checkFields(s.Fields, s.HighestFieldID); err != nil {
		return nil, err
	}
	if err := s.checkKeys(); err != nil {
		return nil, err
	}
	for _, name := range s.PrimaryKeys {
		f := &s.Fields[s.FieldIndex(name)]
		if f.Type.Kind.Nested() {
			return nil, errs.Invalid("primary key %q is of the nested type %s", name, f.Type)
		}
		f.Type.Nullable = false
	}
	o, err := ParseOptions(s)
	if err != nil {
		return nil, err
	}
	if err := s.checkBucketKey(o); err != nil {
		return nil, err
	}
	if err := o.CheckWrite(s); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Schema) moveKeyOptions() error {
	move := func(key string, to *[]string) error {
		text, ok := s.Options[key]
		if !ok {
			return nil
		}
		if len(*to) > 0 {
			return errs.Invalid("option %s = %q is given together with a list of columns", key, text)
		}
		for name := range strings.SplitSeq(text, ",") {
			*to = append(*to, strings.TrimSpace(name))
		}
		delete(s.Options, key)
		return nil
	}
	if err := move("primary-key", &s.PrimaryKeys); err != nil {
		return err
	}
	if err := move("partition", &s.PartitionKeys); err != nil {
		return err
	}
	for _, key := range []string{"path", "branch", "auto-create"} {
		if val, ok := s.Options[key]; ok {
			return errs.Invalid("option %s = %q belongs to a session and is not stored in a table", key, val)
		}
	}
	for key, val := range s.Options {
		if !utf8.ValidString(key) || !utf8.ValidString(val) {
			return errs.Invalid("option %q is not UTF-8", key)
		}
	}
	return nil
}

func checkNames(fields []Field) error {
	var fail error
	walkFields(fields, func(f *Field) {
		switch {
		case fail != nil:
		case strings.TrimSpace(f.Name) == "":
			fail = errs.Invalid("a field has a blank name")
		case !utf8.ValidString(f.Name) || !utf8.ValidString(f.Description):
			fail = errs.Invalid("field %q has a name or description that is not UTF-8", f.Name)
		case strings.ContainsRune(f.Name, 0):
			fail = errs.Invalid("field %q has a NUL in its name", f.Name)
		}
	})
	if fail != nil {
		return fail
	}
	for _, f := range fields {
		if IsSystemName(f.Name) {
			return errs.Invalid("column %q has the name of a system column", f.Name)
		}
	}
	return nil
}

// assignIDs numbers the fields unless their ids are all different already, and
// sets HighestFieldID.
func (s *Schema) assignIDs() {
	numberFields(s.Fields)
	s.HighestFieldID = -1
	walkFields(s.Fields, func(f *Field) { s.HighestFieldID = max(s.HighestFieldID, f.ID) })
}

func numberFields(fields []Field) {
	seen, unique := make(map[int]bool), true
	walkFields(fields, func(f *Field) {
		unique = unique && !seen[f.ID]
		seen[f.ID] = true
	})
	if unique {
		return
	}
	next := 0
	walkFields(fields, func(f *Field) {
		f.ID = next
		next++
	})
}

// checkBucketKey applies the creator's rules for bucket and bucket-key that a
// reader does not insist on.
func (s *Schema) checkBucketKey(o Options) error {
	text, given := s.Options["bucket-key"]
	if o.Bucket < 1 {
		if given {
			return errs.Invalid("option bucket-key = %q needs a fixed number of buckets, bucket is %d", text, o.Bucket)
		}
		return nil
	}
	if len(o.BucketKey) == 0 {
		return errs.Invalid("a bucketed append table needs the option bucket-key, bucket is %d", o.Bucket)
	}
	for i, name := range o.BucketKey {
		switch {
		case slices.Contains(o.BucketKey[:i], name):
			return errs.Invalid("option bucket-key = %q names %q twice", text, name)
		case slices.Contains(s.PartitionKeys, name):
			return errs.Invalid("option bucket-key = %q contains the partition key %q", text, name)
		case s.IsPrimaryKey() && !slices.Contains(s.PrimaryKeys, name):
			return errs.Invalid("option bucket-key = %q: %q is not part of the primary key", text, name)
		case s.Fields[s.FieldIndex(name)].Type.Kind.Nested():
			return errs.Invalid("option bucket-key = %q: %q is of a nested type", text, name)
		}
	}
	return nil
}
