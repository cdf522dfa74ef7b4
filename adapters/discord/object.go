package discord

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/ingest/event"
)

// object is a JSON object of a gateway frame. Its readers note what is wrong
// with a member and return the zero value, so that one pass finds every fault of
// a frame. A member that is null counts as missing; names match exactly.
type object struct {
	path    string // "d.author" for example; empty for the frame itself
	members map[string]json.RawMessage
	faults  *event.FieldErrors // shared by all objects of the frame
}

// parse reads a frame's outermost object.
func parse(body []byte) (object, error) {
	frame := object{faults: &event.FieldErrors{}}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return frame, errors.New("body: must be a JSON object")
	}
	if err := json.Unmarshal(body, &frame.members); err != nil {
		return frame, fmt.Errorf("body: must be a JSON object: %w", err)
	}
	return frame, nil
}

// err is what has been noted anywhere in the frame, nil where nothing was.
func (o object) err() error {
	if len(*o.faults) > 0 {
		return *o.faults
	}
	return nil
}

func (o object) at(key string) string {
	return strings.TrimPrefix(o.path+"."+key, ".")
}

func (o object) wrong(key, message string) {
	*o.faults = append(*o.faults, event.FieldError{Field: o.at(key), Message: message})
}

// has says whether there is a value under key.
func (o object) has(key string) bool {
	raw, found := o.members[key]
	return found && string(raw) != "null"
}

// decode reads the value under key, if there is one, into a pointer. It notes a
// fault, in the words of what the value must be, and returns false where that
// can't be done.
func (o object) decode(key, must string, into any) bool {
	if !o.has(key) {
		return false
	}
	if json.Unmarshal(o.members[key], into) != nil {
		o.wrong(key, "must be "+must)
		return false
	}
	return true
}

func (o object) text(key string) string {
	var s string
	if !o.decode(key, "a string", &s) {
		return ""
	}
	return event.Text(s)
}

func (o object) number(key string) int64 {
	var n int64
	if !o.decode(key, "a whole number", &n) {
		return 0
	}
	return n
}

func (o object) flag(key string) bool {
	var b bool
	return o.decode(key, "true or false", &b) && b
}

// snowflake reads one of Discord's ids, empty where there is none.
func (o object) snowflake(key string) string {
	var id string
	if o.decode(key, "an id: a string of digits", &id) && !isSnowflake(id) {
		o.wrong(key, "must be an id: a string of digits")
		return ""
	}
	return id
}

// requiredSnowflake is a snowflake whose absence is a fault.
func (o object) requiredSnowflake(key string) string {
	if !o.has(key) {
		o.wrong(key, "is required: an id, a string of digits")
	}
	return o.snowflake(key)
}

// snowflakes reads a list of ids that must not be empty.
func (o object) snowflakes(key string) []string {
	var ids []string
	if !o.decode(key, "a list of ids", &ids) && o.has(key) {
		return nil
	}
	if len(ids) == 0 {
		o.wrong(key, "must name at least one id")
	}
	for i, id := range ids {
		if !isSnowflake(id) {
			o.wrong(fmt.Sprintf("%s[%d]", key, i), "must be an id: a string of digits")
		}
	}
	return ids
}

// maxTime bounds what becomes part of a key, in bytes. Discord writes 32.
const maxTime = 40

// time reads a timestamp, the zero time where there is none.
func (o object) time(key string) time.Time {
	s := o.text(key)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || len(s) > maxTime {
		o.wrong(key, "must be a time such as 2026-01-31T12:00:00.000000+00:00")
		return time.Time{}
	}
	return t.UTC()
}

// child is the object under key; false where there is none.
func (o object) child(key string) (object, bool) {
	child := object{path: o.at(key), faults: o.faults}
	ok := o.decode(key, "an object", &child.members)
	return child, ok
}

// requiredChild is a child whose absence is a fault.
func (o object) requiredChild(key string) (object, bool) {
	if !o.has(key) {
		o.wrong(key, "is required: an object")
	}
	return o.child(key)
}

// children are the objects of the list under key.
func (o object) children(key string) []object {
	var list []map[string]json.RawMessage
	if !o.decode(key, "a list of objects", &list) {
		return nil
	}
	children := make([]object, len(list))
	for i, members := range list {
		children[i] = object{path: fmt.Sprintf("%s[%d]", o.at(key), i), members: members, faults: o.faults}
	}
	return children
}
