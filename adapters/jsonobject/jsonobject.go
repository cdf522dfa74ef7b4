// Package jsonobject reads the JSON objects of platforms' payloads, and reports their faults by
// field.
package jsonobject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley/ingest/event"
)

// Fields reads the members of one JSON object in a platform's payload. A method that reads an
// invalid member records a fault and returns the zero value, so that one pass finds all faults
// of the payload. Keys match exactly. A member that is null counts as missing.
type Fields struct {
	path    string // such as "data.chats[0]"; empty for the payload itself
	members map[string]json.RawMessage
	faults  *event.FieldErrors // of all objects of the payload
}

// Parse parses a payload. It returns an error if the payload is not one JSON object.
func Parse(body []byte) (Fields, error) {
	f := Fields{faults: new(event.FieldErrors)}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return f, errors.New("body: must be a JSON object")
	}
	if !json.Valid(body) {
		return f, fmt.Errorf("body: must be a JSON object: %w", json.Unmarshal(body, &f.members))
	}
	f.members, _ = members(bytes.TrimSpace(body))
	return f, nil
}

// Err returns the recorded faults of all objects of the payload as event.FieldErrors, or nil.
func (f Fields) Err() error { return f.faults.Err() }

// Fault records a fault of the member key, unless the payload has too many already. The message
// completes a sentence that begins with the member's path.
func (f Fields) Fault(key, message string) {
	f.faults.Check(len(*f.faults) >= event.MaxFaults, f.at(key), message)
}

// Optional returns the same object without faults: an invalid member of it, or of an object inside
// it, counts as missing. It is for members without which the payload keeps its meaning.
func (f Fields) Optional() Fields {
	f.faults = new(event.FieldErrors)
	return f
}

func (f Fields) at(key string) string { return strings.TrimPrefix(f.path+"."+key, ".") }

// Raw returns the JSON of the member key, or nil if it is missing or null.
func (f Fields) Raw(key string) json.RawMessage {
	if raw := f.members[key]; string(raw) != "null" {
		return raw
	}
	return nil
}

// Has reports whether the member key is present.
func (f Fields) Has(key string) bool { return f.Raw(key) != nil }

// Decode decodes the member key into a pointer. It returns false if the member is missing, or if
// it has another type; the fault is then "must be " and the wanted type.
func (f Fields) Decode(key, want string, into any) bool {
	_, ok := read(f, key, want, func(raw json.RawMessage) (struct{}, bool) { return struct{}{}, json.Unmarshal(raw, into) == nil })
	return ok
}

// read decodes the member key. It returns false if the member is missing or decode refuses it.
func read[T any](f Fields, key, want string, decode func(raw json.RawMessage) (T, bool)) (value T, ok bool) {
	raw := f.Raw(key)
	if raw == nil {
		return value, false
	}
	if value, ok = decode(raw); !ok {
		f.Fault(key, "must be "+want)
	}
	return value, ok
}

// Text returns a string, cleaned by event.Text.
func (f Fields) Text(key string) string {
	s, _ := read(f, key, "a string", text)
	return event.Text(s)
}

// ShortText returns a Text of at most limit bytes, such as a part of a dedupe key.
func (f Fields) ShortText(key string, limit int) string {
	s := f.Text(key)
	if len(s) > limit {
		f.Fault(key, fmt.Sprintf("is %d bytes long, must be at most %d", len(s), limit))
		return ""
	}
	return s
}

// Number returns an integer. The number may be given as a text, and its fraction is cut off.
func (f Fields) Number(key string) int64 {
	n, _ := read(f, key, "a number", number)
	return n
}

// Flag returns a boolean.
func (f Fields) Flag(key string) bool {
	b, _ := read(f, key, "true or false", flag)
	return b
}

// Child returns an object. It returns false if the member is missing or is not an object.
func (f Fields) Child(key string) (child Fields, ok bool) {
	child = Fields{path: f.at(key), faults: f.faults}
	child.members, ok = read(f, key, "an object", members)
	return child, ok
}

// RequiredChild is Child for a member whose absence is a fault.
func (f Fields) RequiredChild(key string) (Fields, bool) {
	if !f.Has(key) {
		f.Fault(key, "is required: an object")
	}
	return f.Child(key)
}

// Children returns a list of objects.
func (f Fields) Children(key string) []Fields {
	list, ok := read(f, key, "a list of objects", objects)
	if !ok {
		return nil
	}
	children := make([]Fields, len(list))
	for i, members := range list {
		children[i] = Fields{fmt.Sprintf("%s[%d]", f.at(key), i), members, f.faults}
	}
	return children
}
