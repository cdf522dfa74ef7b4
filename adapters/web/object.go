package web

import (
	"bytes"
	"encoding/json"
	"errors"

	"parley/ingest/event"
)

// whole is the field of a fault of a whole body.
const whole = "body"

// readMembers reads a JSON object. read returns the fault of a member, or "".
func readMembers(raw []byte, read func(m event.Extra) string) (faults event.FieldErrors) {
	members, err := event.ReadObject(raw)
	if err != nil && !errors.As(err, &faults) {
		return event.FieldErrors{{Field: whole, Message: err.Error()}}
	}
	for _, m := range members {
		fault := read(m)
		faults.Check(fault == "", m.Key, fault)
	}
	return faults
}

// unreadable reports whether the only fault is that the body is not a JSON object. Then the
// caller must not report missing members.
func unreadable(faults event.FieldErrors) bool { return len(faults) == 1 && faults[0].Field == whole }

// text reads a string. It returns the fault's text, or "".
func text(value json.RawMessage, into *string) string {
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil {
		return "must be a string"
	}
	*into = event.Text(*s)
	return ""
}

// encode returns the JSON of a text.
func encode(s string) []byte {
	raw, _ := json.Marshal(s) // a text always encodes
	return raw
}

// validUTF8 replaces invalid UTF-8, so that stored metadata can be shown as JSON.
func validUTF8(raw []byte) []byte { return bytes.ToValidUTF8(raw, []byte("\uFFFD")) }
