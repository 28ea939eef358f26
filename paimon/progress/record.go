package progress

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/schema/jsontree"
)

// RecordProperty is the snapshot property of the record.
const RecordProperty = "tideline.session"

// Caps of a record.
const (
	MaxInlineBytes   = 4 << 10  // of the property
	MaxPositionBytes = 64 << 10 // of a caller's position
	MaxUsers         = 64
	MaxUserBytes     = 1 << 10 // of the name of a commit user
	MaxRecordBytes   = 1 << 20 // of the file
	recordVersion    = 1
)

// User is a commit user with the newest identifier it committed.
type User struct {
	Name       string
	Identifier int64
}

// Record says who published a snapshot and what the caller gave along.
type Record struct {
	Session  string // uuid of the writing session, lower-case
	Attempt  string // uuid of the attempt to publish, lower-case
	Users    []User // the most recently seen first, names differ
	Position []byte // nil for none; an empty position is not none
}

// Identifier is the newest identifier of a commit user that is remembered.
func (r Record) Identifier(user string) (int64, bool) {
	i := slices.IndexFunc(r.Users, func(u User) bool { return u.Name == user })
	if i < 0 {
		return 0, false
	}
	return r.Users[i].Identifier, true
}

// WithUser is a copy that has seen the identifier of a user: the user comes
// first, its identifier never goes down, and users beyond MaxUsers are forgotten.
func (r Record) WithUser(user string, identifier int64) Record {
	if old, ok := r.Identifier(user); ok {
		identifier = max(identifier, old)
	}
	users := make([]User, 1, len(r.Users)+1)
	users[0] = User{Name: user, Identifier: identifier}
	for _, u := range r.Users {
		if u.Name != user && len(users) < MaxUsers {
			users = append(users, u)
		}
	}
	r.Users = users
	return r
}

func (r Record) check() error {
	if !isUUID(r.Session) || !isUUID(r.Attempt) {
		return errs.Invalid("session %q and attempt %q must be lower-case uuids", r.Session, r.Attempt)
	}
	if len(r.Position) > MaxPositionBytes {
		return errs.Invalid("position of %d bytes, at most %d are possible", len(r.Position), MaxPositionBytes)
	}
	return checkUsers(r.Users)
}

func checkUsers(users []User) error {
	if len(users) > MaxUsers {
		return errs.Invalid("%d commit users, at most %d are remembered", len(users), MaxUsers)
	}
	seen := make(map[string]bool, len(users))
	for _, u := range users {
		if u.Name == "" || len(u.Name) > MaxUserBytes || seen[u.Name] || !utf8.ValidString(u.Name) {
			return errs.Invalid("commit user %.64q is empty, longer than %d bytes, not UTF-8 or named twice", u.Name, MaxUserBytes)
		}
		seen[u.Name] = true
	}
	return nil
}

// isUUID accepts the canonical lower-case form only.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

type jsonRecord struct {
	Version  int      `json:"version"`
	Session  string   `json:"session,omitempty"`
	Attempt  string   `json:"attempt"`
	File     string   `json:"file,omitempty"`
	Users    [][2]any `json:"users,omitempty"`
	Position *string  `json:"position,omitempty"`
}

// Marshal gives the property of a snapshot and, when the record does not fit
// into it, the content of the file that must be durable before the snapshot is
// published; content is nil when no file is needed. name is the base name of that
// file, from PositionName.
func (r Record) Marshal(name string) (property string, content []byte, err error) {
	if err := r.check(); err != nil {
		return "", nil, err
	}
	full := jsonRecord{Version: recordVersion, Session: r.Session, Attempt: r.Attempt}
	for _, u := range r.Users {
		full.Users = append(full.Users, [2]any{u.Name, u.Identifier})
	}
	if r.Position != nil {
		text := base64.StdEncoding.EncodeToString(r.Position)
		full.Position = &text
	}
	data, err := encode(full, "")
	if err != nil {
		return "", nil, err
	}
	if len(data) <= MaxInlineBytes {
		return string(data), nil, nil
	}
	if err := checkPositionName(name); err != nil {
		return "", nil, err
	}
	head, err := encode(jsonRecord{Version: recordVersion, Session: r.Session, Attempt: r.Attempt, File: name}, "")
	if err != nil {
		return "", nil, err
	}
	full.Session = ""
	if content, err = encode(full, ""); err != nil {
		return "", nil, err
	}
	return string(head), content, nil
}

func checkPositionName(name string) error {
	uuid, ok := strings.CutSuffix(name, positionSuffix)
	if !ok || !isUUID(uuid) || path.CheckName(name) != nil {
		return errs.Invalid("%q is not the name of a record file", name)
	}
	return nil
}

var recordLimits = jsontree.Limits{Bytes: MaxRecordBytes, Depth: 16, Values: 4096}

// ParseRecord reads the property. When rest is not "" it is the base name of the
// file that holds users and position: ParseFile adds them. snapshot is the name of
// the snapshot file, for errors.
func ParseRecord(property, snapshot string) (r Record, rest string, err error) {
	where := snapshot + " property " + RecordProperty
	if len(property) > MaxInlineBytes {
		return Record{}, "", errs.Corrupt(where, -1, "%d bytes, at most %d are possible", len(property), MaxInlineBytes)
	}
	root, err := jsontree.Parse([]byte(property), where, recordLimits)
	if err != nil {
		return Record{}, "", err
	}
	if err := checkVersion(root, recordVersion); err != nil {
		return Record{}, "", err
	}
	if r.Session, err = needUUID(root, "session"); err != nil {
		return Record{}, "", err
	}
	if r.Attempt, err = needUUID(root, "attempt"); err != nil {
		return Record{}, "", err
	}
	file, err := root.GetStr("file")
	if err != nil {
		return Record{}, "", err
	}
	if file != nil {
		if err := checkPositionName(*file); err != nil {
			return Record{}, "", root.Corrupt("%v", err)
		}
		return r, *file, nil
	}
	return r, "", r.parseBody(root)
}

// ParseFile completes a record from the content of its file; file is the name
// for errors.
func (r *Record) ParseFile(content []byte, file string) error {
	root, err := jsontree.Parse(content, file, recordLimits)
	if err != nil {
		return err
	}
	if err := checkVersion(root, recordVersion); err != nil {
		return err
	}
	attempt, err := needUUID(root, "attempt")
	if err != nil {
		return err
	}
	if attempt != r.Attempt {
		return root.Corrupt("belongs to the attempt %s, the snapshot is of %s", attempt, r.Attempt)
	}
	return r.parseBody(root)
}

func needUUID(root *jsontree.Node, key string) (string, error) {
	text, err := root.NeedStr(key)
	if err == nil && !isUUID(text) {
		return "", root.Corrupt("%s %.64q is not a lower-case uuid", key, text)
	}
	return text, err
}

func (r *Record) parseBody(root *jsontree.Node) error {
	users, err := parseUsers(root)
	if err != nil {
		return err
	}
	text, err := root.GetStr("position")
	if err != nil {
		return err
	}
	var position []byte
	if text != nil {
		position, err = base64.StdEncoding.Strict().DecodeString(*text)
		if err != nil || len(position) > MaxPositionBytes || strings.ContainsAny(*text, "\r\n") {
			return root.Corrupt("position is not base64 of at most %d bytes", MaxPositionBytes)
		}
	}
	r.Users, r.Position = users, position
	return nil
}

func parseUsers(root *jsontree.Node) ([]User, error) {
	list, err := root.Get("users")
	if err != nil || list == nil {
		return nil, err
	}
	items, err := list.Items()
	if err != nil {
		return nil, err
	}
	users := make([]User, len(items))
	for i, item := range items {
		pair, err := item.Items()
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, item.Corrupt("has %d elements, a name and a number are expected", len(pair))
		}
		if users[i].Name, err = pair[0].Str(); err != nil {
			return nil, err
		}
		if users[i].Identifier, err = pair[1].Int(math.MinInt64, math.MaxInt64); err != nil {
			return nil, err
		}
	}
	if err := checkUsers(users); err != nil {
		return nil, list.Corrupt("%v", err)
	}
	return users, nil
}
