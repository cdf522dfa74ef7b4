package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/ingest/event"
)

// unmarshal decodes a JSON object as far as possible. It returns a fault for every
// member that it can't decode. The members' names in the faults begin with path.
func unmarshal[T any](raw []byte, into *T, path string) event.FieldErrors {
	err := json.Unmarshal(raw, into)
	if err == nil && IsObject(raw) {
		return nil
	}
	if len(raw) == 0 {
		return event.FieldErrors{{Field: objectName(path), Message: "is missing"}}
	}
	members, unread := event.ReadObject(raw)
	var faults event.FieldErrors
	if unread != nil && !errors.As(unread, &faults) {
		return event.FieldErrors{{Field: objectName(path), Message: unread.Error()}}
	}
	for _, member := range members {
		faults = append(faults, memberFaults[T](member)...)
	}
	if len(faults) == 0 {
		return event.FieldErrors{{Field: objectName(path), Message: err.Error()}}
	}
	for i := range faults {
		faults[i].Field = path + faults[i].Field
	}
	return faults
}

// memberFaults returns the faults of one member of an object that is decoded into a T.
func memberFaults[T any](member event.Extra) event.FieldErrors {
	key, _ := json.Marshal(member.Key) // encoding a string never fails
	alone := slices.Concat([]byte("{"), key, []byte(":"), member.Value, []byte("}"))
	var wrong *json.UnmarshalTypeError
	if !errors.As(json.Unmarshal(alone, new(T)), &wrong) {
		return nil
	}
	return event.FieldErrors{{Field: wrong.Field, Message: fmt.Sprintf("must be %s, not %s", jsonType(wrong.Type), wrong.Value)}}
}

// number is a number of any form.
type number float64

// whole returns the number without its fraction; 0 if it is negative or absurd.
func (n number) whole() int64 {
	if n >= 0 && n < 1<<53 {
		return int64(n)
	}
	return 0
}

// IsObject reports whether raw begins like a JSON object.
func IsObject(raw []byte) bool {
	i := slices.IndexFunc(raw, func(b byte) bool { return b != ' ' && b != '\t' && b != '\r' && b != '\n' })
	return i >= 0 && raw[i] == '{'
}

// objectName returns the name of the object whose members' names begin with path.
func objectName(path string) string {
	if path == "" {
		return "body"
	}
	return path[:len(path)-1]
}

// jsonType returns the name of the JSON type that decodes into t.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "an array"
	default:
		return "an object"
	}
}

// fields collects the faults of one event.
type fields struct {
	path string
	// odd are the faults of members that could not be decoded. They count only for the members that
	// the event needs, because Slack may change any other.
	odd    event.FieldErrors
	faults event.FieldErrors
}

// formed adds a fault for each of the named fields that could not be decoded.
func (f *fields) formed(names ...string) {
	for _, name := range names {
		f.isOdd(f.path + name)
	}
}

// isOdd reports whether a field or an object around it could not be decoded, and adds its fault once.
func (f *fields) isOdd(field string) bool {
	around := func(e event.FieldError) bool { return e.Field == field || strings.HasPrefix(field, e.Field+".") }
	i := slices.IndexFunc(f.odd, around)
	if i >= 0 && !slices.Contains(f.faults, f.odd[i]) {
		f.faults = append(f.faults, f.odd[i])
	}
	return i >= 0
}

// require adds a fault if a field is missing or has a wrong form. A null counts as missing.
func (f *fields) require(name, value string, valid func(string) bool, form string) {
	field := f.path + name
	switch {
	case f.isOdd(field):
	case value == "":
		f.faults = append(f.faults, event.FieldError{Field: field, Message: "is missing"})
	case !valid(value):
		f.faults = append(f.faults, event.FieldError{Field: field, Message: fmt.Sprintf("is %.80q, must be %s", value, form)})
	}
}

func (f *fields) channel(name, value string) {
	f.require(name, value, IsID, "a channel id such as C06RY3YBSLE")
}

func (f *fields) timestamp(name, value string) {
	f.require(name, value, IsTimestamp, "a timestamp such as 1700000000.000100")
}

func (f *fields) required(name, value string) {
	f.require(name, value, func(string) bool { return true }, "")
}
