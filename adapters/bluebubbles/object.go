package bluebubbles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/ingest/event"
)

// maxID bounds what becomes part of a key of the store, in bytes. BlueBubbles'
// own ids are below 100.
const maxID = 512

// object is a JSON object of a payload. Reading a member of the wrong type notes
// a fault and gives the zero value, so that one error can name every field. A
// member that is null is the same as none.
type object struct {
	path    string // such as "data.chats[0]"; empty for the body itself
	members map[string]json.RawMessage
	faults  *event.FieldErrors
}

// readObject reads the body of a payload. Member names match exactly.
func readObject(body []byte) (object, error) {
	o := object{faults: new(event.FieldErrors)}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return o, errors.New("body: must be a JSON object")
	}
	if err := json.Unmarshal(body, &o.members); err != nil {
		return o, fmt.Errorf("body: must be a JSON object: %w", err)
	}
	return o, nil
}

// err is every fault noted so far, in any object of the payload; nil for none.
func (o object) err() error {
	if len(*o.faults) == 0 {
		return nil
	}
	return *o.faults
}

func (o object) name(key string) string {
	if o.path == "" {
		return key
	}
	return o.path + "." + key
}

func (o object) fault(key, words string) {
	*o.faults = append(*o.faults, event.FieldError{Field: o.name(key), Message: words})
}

// member decodes the member key; false where it is missing, null or at fault.
func member[T any](o object, key, must string) (T, bool) {
	var value, zero T
	raw := o.members[key]
	if raw == nil || string(raw) == "null" {
		return zero, false
	}
	if json.Unmarshal(raw, &value) != nil {
		o.fault(key, "must be "+must)
		return zero, false
	}
	return value, true
}

func (o object) text(key string) string {
	s, _ := member[string](o, key, "a string")
	return event.Text(s)
}

// id is a text that is short enough to be a key.
func (o object) id(key string) string {
	s := o.text(key)
	if len(s) > maxID {
		o.fault(key, fmt.Sprintf("is %d bytes long, must be at most %d", len(s), maxID))
		return ""
	}
	return s
}

// requiredID is an id that must be there.
func (o object) requiredID(key string) string {
	before := len(*o.faults)
	s := o.id(key)
	if s == "" && len(*o.faults) == before {
		o.fault(key, "is required and must not be empty")
	}
	return s
}

func (o object) number(key string) (int64, bool) {
	return member[int64](o, key, "a whole number")
}

func (o object) flag(key string) bool {
	b, _ := member[bool](o, key, "true or false")
	return b
}

// word is an id that may also be written as a number.
func (o object) word(key string) string {
	var number int64
	if raw := o.members[key]; raw != nil && json.Unmarshal(raw, &number) == nil && string(raw) != "null" {
		return strconv.FormatInt(number, 10)
	}
	return o.id(key)
}

// endOfTime is the first millisecond that RFC 3339 can't write: the year 10000.
const endOfTime = 253_402_300_800_000

// date is a time in milliseconds since 1970; 0, like null, is no time.
func (o object) date(key string) time.Time {
	ms, _ := o.number(key)
	if ms < 0 || ms >= endOfTime {
		o.fault(key, "must be milliseconds since 1970")
		return time.Time{}
	}
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// child is the object under key; false where there is none.
func (o object) child(key string) (object, bool) {
	members, ok := member[map[string]json.RawMessage](o, key, "an object")
	return object{path: o.name(key), members: members, faults: o.faults}, ok
}

// children are the objects of the list under key.
func (o object) children(key string) []object {
	list, _ := member[[]map[string]json.RawMessage](o, key, "a list of objects")
	children := make([]object, len(list))
	for i, members := range list {
		children[i] = object{path: fmt.Sprintf("%s[%d]", o.name(key), i), members: members, faults: o.faults}
	}
	return children
}
