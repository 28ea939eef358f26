package manifest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
)

// MaxSnapshotBytes is the largest snapshot file that is parsed; real ones have a
// kilobyte.
const MaxSnapshotBytes = 1 << 20

// Version of snapshot files that is written, and the newest that is read.
const snapshotVersion = 3

// ParseSnapshot reads a snapshot file (FORMAT §3.1). Unknown keys are ignored, a
// null counts as absent, and a missing version as version 1. errs.ErrCorrupt names the
// key that is missing or has the wrong type; errs.ErrUnsupported for a newer version.
func ParseSnapshot(data []byte, file string) (*Snapshot, error) {
	if len(data) > MaxSnapshotBytes {
		return nil, errs.Corrupt(file, -1, "a snapshot of %d bytes, at most %d are read", len(data), MaxSnapshotBytes)
	}
	if !utf8.Valid(data) {
		return nil, errs.Corrupt(file, -1, "the text is not UTF-8")
	}
	// A map keeps keys apart that differ only in case, a struct would not.
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, errs.Corrupt(file, -1, "no JSON object: %v", err)
	}
	if keys == nil {
		return nil, errs.Corrupt(file, -1, "no JSON object: null")
	}
	p := snapshotParser{file: file, keys: keys}
	s := &Snapshot{
		Version:               int(p.numberOr("version", 1)),
		UUID:                  p.textOr("uuid"),
		ID:                    p.number("id"),
		SchemaID:              p.number("schemaId"),
		BaseManifestList:      p.name("baseManifestList", true),
		BaseManifestListSize:  p.optional("baseManifestListSize"),
		DeltaManifestList:     p.name("deltaManifestList", true),
		DeltaManifestListSize: p.optional("deltaManifestListSize"),
		ChangelogManifestList: p.name("changelogManifestList", false),
		ChangelogListSize:     p.optional("changelogManifestListSize"),
		IndexManifest:         p.name("indexManifest", false),
		CommitUser:            p.text("commitUser"),
		WriterVersion:         p.textOr("writerVersion"),
		CommitIdentifier:      p.number("commitIdentifier"),
		CommitKind:            p.text("commitKind"),
		TimeMillis:            p.number("timeMillis"),
		TotalRecordCount:      p.number("totalRecordCount"),
		DeltaRecordCount:      p.number("deltaRecordCount"),
		ChangelogRecordCount:  p.optional("changelogRecordCount"),
		Watermark:             p.optional("watermark"),
		Statistics:            p.name("statistics", false),
		Properties:            p.properties(),
		NextRowID:             p.optional("nextRowId"),
		Operation:             p.textOr("operation"),
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case s.Version > snapshotVersion:
		return nil, errs.Unsupported("%s is a snapshot of version %d, at most %d is read", file, s.Version, snapshotVersion)
	case s.ID < 1:
		return nil, errs.Corrupt(file, -1, "key id: %d is no snapshot id", s.ID)
	}
	return s, nil
}

// snapshotParser takes keys apart; the first error sticks.
type snapshotParser struct {
	file string
	keys map[string]json.RawMessage
	err  error
}

func (p *snapshotParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = errs.Corrupt(p.file, -1, format, args...)
	}
}

// raw gives the text of a key, nil when it is absent or null.
func (p *snapshotParser) raw(key string, required bool) []byte {
	raw := p.keys[key]
	if len(raw) == 0 || string(raw) == "null" {
		if required {
			p.fail("required key %s is missing", key)
		}
		return nil
	}
	return raw
}

func (p *snapshotParser) parseNumber(key string, raw []byte) int64 {
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		p.fail("key %s: %.40q is no 64-bit integer", key, raw)
	}
	return v
}

func (p *snapshotParser) number(key string) int64 {
	raw := p.raw(key, true)
	if raw == nil {
		return 0
	}
	return p.parseNumber(key, raw)
}

func (p *snapshotParser) numberOr(key string, otherwise int64) int64 {
	raw := p.raw(key, false)
	if raw == nil {
		return otherwise
	}
	return p.parseNumber(key, raw)
}

func (p *snapshotParser) optional(key string) *int64 {
	raw := p.raw(key, false)
	if raw == nil {
		return nil
	}
	v := p.parseNumber(key, raw)
	return &v
}

func (p *snapshotParser) text(key string) string {
	return p.parseText(key, p.raw(key, true))
}

func (p *snapshotParser) textOr(key string) string {
	return p.parseText(key, p.raw(key, false))
}

func (p *snapshotParser) parseText(key string, raw []byte) (s string) {
	if raw != nil {
		if err := json.Unmarshal(raw, &s); err != nil {
			p.fail("key %s: %.40q is no string", key, raw)
		}
	}
	return s
}

// name reads a file name, which becomes part of a path.
func (p *snapshotParser) name(key string, required bool) string {
	raw := p.raw(key, required)
	s := p.parseText(key, raw)
	if raw != nil {
		if err := checkName(s); err != nil {
			p.fail("key %s: %s", key, reason(err))
		}
	}
	return s
}

func (p *snapshotParser) properties() map[string]string {
	raw := p.raw("properties", false)
	if raw == nil {
		return nil
	}
	var m map[string]string
	if err := json.Unmarshal(raw, &m); err != nil {
		p.fail("key properties: no object of strings: %v", err)
	}
	return m
}

// Marshal gives the text of the snapshot file: Java's keys in Java's order and
// Java's pretty printing, absent values left out, properties sorted. A zero Version is
// written as the present one.
func (s *Snapshot) Marshal() []byte {
	version := int64(s.Version)
	if version == 0 {
		version = snapshotVersion
	}
	var w jsonWriter
	w.number("version", version)
	w.textOr("uuid", s.UUID)
	w.number("id", s.ID)
	w.number("schemaId", s.SchemaID)
	w.text("baseManifestList", s.BaseManifestList)
	w.optional("baseManifestListSize", s.BaseManifestListSize)
	w.text("deltaManifestList", s.DeltaManifestList)
	w.optional("deltaManifestListSize", s.DeltaManifestListSize)
	w.textOr("changelogManifestList", s.ChangelogManifestList)
	w.optional("changelogManifestListSize", s.ChangelogListSize)
	w.textOr("indexManifest", s.IndexManifest)
	w.text("commitUser", s.CommitUser)
	w.textOr("writerVersion", s.WriterVersion)
	w.number("commitIdentifier", s.CommitIdentifier)
	w.text("commitKind", s.CommitKind)
	w.number("timeMillis", s.TimeMillis)
	w.number("totalRecordCount", s.TotalRecordCount)
	w.number("deltaRecordCount", s.DeltaRecordCount)
	w.optional("changelogRecordCount", s.ChangelogRecordCount)
	w.optional("watermark", s.Watermark)
	w.textOr("statistics", s.Statistics)
	w.object("properties", s.Properties)
	w.optional("nextRowId", s.NextRowID)
	w.textOr("operation", s.Operation)
	return append(w.buf, "\n}"...)
}

// jsonWriter writes one object the way Jackson's pretty printer does:
// two blanks of indentation and " : " between key and value.
type jsonWriter struct{ buf []byte }

func (w *jsonWriter) key(key string) {
	if len(w.buf) == 0 {
		w.buf = append(w.buf, '{')
	} else {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, "\n  \""...)
	w.buf = append(w.buf, key...)
	w.buf = append(w.buf, "\" : "...)
}

func (w *jsonWriter) number(key string, v int64) {
	w.key(key)
	w.buf = strconv.AppendInt(w.buf, v, 10)
}

func (w *jsonWriter) optional(key string, v *int64) {
	if v != nil {
		w.number(key, *v)
	}
}

func (w *jsonWriter) text(key, v string) {
	w.key(key)
	w.buf = append(w.buf, quote(v)...)
}

func (w *jsonWriter) textOr(key, v string) {
	if v != "" {
		w.text(key, v)
	}
}

func (w *jsonWriter) object(key string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	w.key(key)
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	sep := "{"
	for _, k := range names {
		w.buf = append(w.buf, sep...)
		w.buf = append(w.buf, "\n    "...)
		w.buf = append(w.buf, quote(k)...)
		w.buf = append(w.buf, " : "...)
		w.buf = append(w.buf, quote(m[k])...)
		sep = ","
	}
	w.buf = append(w.buf, "\n  }"...)
}

// quote gives a JSON string without the HTML escapes that Java does not write.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return []byte(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
