package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// compact is the wire form of a message. A member without a value is left out.
type compact struct {
	Type       *Type           `json:"t"`
	Text       string          `json:"m,omitempty"`
	Workstream string          `json:"w,omitempty"`
	Details    json.RawMessage `json:"d,omitempty"`
	Final      int             `json:"f,omitempty"`
	Time       Instant         `json:"ts,omitzero"`
	ActivityID string          `json:"i,omitempty"`
	HTML       string          `json:"h,omitempty"` // never read
}

// MarshalJSON returns the compact message: {"t","m","w","d","f","ts","i"}, and "h" with HTML. The time is in
// milliseconds since 1970.
func (m Message) MarshalJSON() ([]byte, error) {
	c := compact{Type: &m.Type, Text: m.Text, Workstream: m.Workstream, Details: m.Details, Time: Instant{m.Time}, ActivityID: m.ActivityID, HTML: m.HTML}
	if m.Workstream == Main {
		c.Workstream = ""
	}
	if m.Final {
		c.Final = 1
	}
	return json.Marshal(c)
}

// UnmarshalJSON reads a compact message.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var c compact
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	if c.Type == nil {
		return errors.New("t: is required: the number of the message's type")
	}
	if c.Final != 0 && c.Final != 1 {
		return fmt.Errorf("f: is %d, must be 0 or 1", c.Final)
	}
	*m = Message{Type: *c.Type, Text: c.Text, Workstream: c.Workstream, Final: c.Final == 1, Time: c.Time.Time, ActivityID: c.ActivityID}
	if m.Workstream == Main {
		m.Workstream = ""
	}
	if string(c.Details) != "null" {
		m.Details = c.Details
	}
	return nil
}

// UnmarshalJSON reads a type's number, or its name in any case.
func (t *Type) UnmarshalJSON(raw []byte) error {
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return json.Unmarshal(raw, (*int64)(t))
	}
	i := slices.Index(names[:], strings.ToUpper(name))
	if i < 0 {
		return fmt.Errorf("%q is not the type of a message", name)
	}
	*t = Type(i)
	return nil
}

// Instant is a time on the wire: a number of milliseconds since 1970, or a text of older
// servers in the form of RFC 3339. 0 is none.
type Instant struct{ time.Time }

// MarshalJSON returns the number.
func (i Instant) MarshalJSON() ([]byte, error) {
	if i.IsZero() {
		return []byte("0"), nil
	}
	return json.Marshal(i.UnixMilli())
}

// UnmarshalJSON reads either form.
func (i *Instant) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &i.Time)
	}
	var ms float64
	if err := json.Unmarshal(raw, &ms); err != nil || ms == 0 {
		return err
	}
	i.Time = time.UnixMilli(int64(ms)).UTC()
	return nil
}

// Parse reads a message in either form, or a JSON text that contains one.
func Parse(raw []byte) (Message, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		raw = []byte(text)
	}
	var form struct {
		Compact  json.RawMessage `json:"t"`
		Readable json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return Message{}, fmt.Errorf("read a message: %w", err)
	}
	var err error
	var m Message
	switch {
	case form.Compact != nil:
		err = json.Unmarshal(raw, &m)
	case form.Readable != nil:
		var r Readable
		if err = json.Unmarshal(raw, &r); err == nil {
			m, err = r.Message()
		}
	default:
		err = errors.New("has neither t nor type")
	}
	if err != nil {
		return Message{}, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}
