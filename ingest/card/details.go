package card

import (
	"bytes"
	"encoding/json"
	"errors"

	"parley/ingest/event"
)

// The keys of an answer's or a tool result's details.
const (
	SchemaKey = event.KeyCard
	HintsKey  = "ui_hints"
)

// outputs are the keys of the details of agents whose framework nests its hints.
var outputs = []string{"worker_agent_output", "tool_agent_output"}

// Compile returns the details of a message with their card checked: a uiSchema stays as it came, and
// hints become one. Other details, and those without a card, stay as they are. If the card has faults, the error is
// event.FieldErrors with their paths, and the details are those without the card.
func Compile(details json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(details, []byte(SchemaKey)) && !bytes.Contains(details, []byte(HintsKey)) {
		return details, nil
	}
	members, err := event.ReadObject(details)
	if err != nil {
		return details, nil // no object has no card
	}
	var kept []event.Extra
	var schema, hints json.RawMessage
	path := HintsKey
	for _, m := range members {
		switch {
		case m.Key == SchemaKey && given(m.Value):
			schema = m.Value
			continue
		case m.Key == HintsKey && given(m.Value):
			hints = m.Value
			continue
		}
		for _, output := range outputs {
			if nested := member(m, output); given(nested) && hints == nil {
				hints, path = nested, output+"."+HintsKey
			}
		}
		kept = append(kept, m)
	}
	switch {
	case schema != nil && hints != nil:
		err = event.FieldErrors{{Field: path, Message: "must not stand beside " + SchemaKey}}
	case schema != nil:
		err = submitted(schema, SchemaKey)
	case hints != nil:
		var c Card
		if c, err = compile(hints, path); err == nil {
			schema, _ = event.JSON(c)   // a card always encodes
			_, err = Read(schema, path) // hints may be empty, or texts of no characters
		}
	default:
		return details, nil
	}
	if err == nil {
		kept = append(kept, event.Extra{Key: SchemaKey, Value: schema})
	}
	return join(kept), err
}

// Lift adds the card in a result, which a protocol nests in a message, to the message's details: its uiSchema, or its hints. Details that
// have one keep it. A result may be the text of an object. A result that is no object, or has no card, adds nothing.
func Lift(details map[string]any, result json.RawMessage) {
	if !bytes.Contains(result, []byte(SchemaKey)) && !bytes.Contains(result, []byte(HintsKey)) {
		return
	}
	var text string
	if json.Unmarshal(result, &text) == nil {
		result = json.RawMessage(text)
	}
	var members map[string]json.RawMessage
	if details[SchemaKey] != nil || details[HintsKey] != nil || json.Unmarshal(result, &members) != nil {
		return
	}
	for _, key := range []string{SchemaKey, HintsKey} {
		if given(members[key]) {
			details[key] = members[key]
			return
		}
	}
	for _, output := range outputs {
		if nested := member(event.Extra{Key: output, Value: members[output]}, output); given(nested) {
			details[HintsKey] = nested
			return
		}
	}
}

// Of returns the card of details that Compile has returned; nil if they have none.
func Of(details json.RawMessage) *Card {
	var m struct {
		UISchema json.RawMessage `json:"uiSchema"`
	}
	if !bytes.Contains(details, []byte(SchemaKey)) || json.Unmarshal(details, &m) != nil || !given(m.UISchema) {
		return nil
	}
	c, err := Read(m.UISchema, SchemaKey)
	if err != nil {
		return nil
	}
	return &c
}

// Check returns the faults of the uiSchema that the metadata of a message may have. Their paths begin with path. Check changes nothing:
// metadata stays as it came.
func Check(metadata json.RawMessage, path string) (faults event.FieldErrors) {
	var m map[string]json.RawMessage
	if !bytes.Contains(metadata, []byte(SchemaKey)) || json.Unmarshal(metadata, &m) != nil || !given(m[SchemaKey]) {
		return nil
	}
	faults, _ = errors.AsType[event.FieldErrors](submitted(m[SchemaKey], path+"."+SchemaKey))
	return faults
}

// Faults returns the faults of Compile for details that are a member of a request: its path precedes theirs. A
// nil error has none.
func Faults(path string, err error) (faults event.FieldErrors) {
	of, _ := errors.AsType[event.FieldErrors](err)
	for _, f := range of {
		faults = append(faults, event.FieldError{Field: path + "." + f.Field, Message: f.Message})
	}
	return faults
}

// member returns the hints in a member that has a name; nil for none.
func member(m event.Extra, name string) json.RawMessage {
	var output map[string]json.RawMessage
	if m.Key != name || json.Unmarshal(m.Value, &output) != nil {
		return nil
	}
	return output[HintsKey]
}

// join returns the object of members; nil for none. The values keep their bytes.
func join(members []event.Extra) json.RawMessage {
	if len(members) == 0 {
		return nil
	}
	var out bytes.Buffer
	for i, m := range members {
		out.WriteByte("{,"[min(i, 1)])
		out.Write(encode(m.Key))
		out.WriteByte(':')
		out.Write(m.Value)
	}
	out.WriteByte('}')
	return out.Bytes()
}
