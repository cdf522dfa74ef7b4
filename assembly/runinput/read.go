package runinput

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"parley/ingest/event"
)

// Received is a RunAgentInput as a client has sent it.
type Received struct {
	Input
	// Rest is the object for ReadRest.
	Rest json.RawMessage
}

// roles are the roles of messages.
var roles = []string{"user", "assistant", "system", "tool", "developer", "reasoning", "activity"}

// Read reads a body. Its error is event.FieldErrors and names every member of a wrong form.
// With it, Received has the other members, because a broken rule (Check) is reported first.
func Read(raw []byte) (Received, error) {
	var r reader
	members, err := event.ReadObject(raw)
	if !errors.As(err, &r.faults) && err != nil {
		return Received{}, event.FieldErrors{{Field: "body", Message: err.Error()}}
	}
	var in Received
	rest := members[:0:0]
	for _, m := range members {
		r.faults.Check(!event.IsDeep(m.Value), m.Key, "must not be nested more than 100 deep")
		switch m.Key {
		case "threadId":
			in.ThreadID = strings.ToLower(r.text("", m))
			continue
		case "runId":
			in.RunID = r.text("", m)
			continue
		case "parentRunId":
			in.ParentRunID = r.text("", m)
		case "messages":
			in.Messages, m.Value = r.messages(m.Value)
		case "tools":
			r.tools(m.Value)
		case "context":
			r.context(m.Value)
		}
		rest = append(rest, m)
	}
	r.faults.Check(in.RunID != "", "runId", "is required")
	r.faults.Check(strings.IndexFunc(in.RunID, unicode.IsControl) < 0, "runId", "must have no control characters")
	in.Rest = event.WriteObject(rest)
	return in, r.faults.Err()
}

// reader collects the faults of a body.
type reader struct{ faults event.FieldErrors }

// text reads a text; null is empty.
func (r *reader) text(path string, m event.Extra) (s string) {
	r.faults.Check(json.Unmarshal(m.Value, &s) == nil, path+m.Key, "must be a string")
	return event.Text(s)
}

// list reads a list; null is empty.
func (r *reader) list(path string, value json.RawMessage) (list []json.RawMessage) {
	r.faults.Check(json.Unmarshal(value, &list) == nil, path, "must be a list")
	return list
}

// object reads an object of a list.
func (r *reader) object(path string, value json.RawMessage) []event.Extra {
	members, err := event.ReadObject(value)
	var doubled event.FieldErrors
	switch {
	case errors.As(err, &doubled):
		for _, f := range doubled {
			r.faults = append(r.faults, event.FieldError{Field: path + "." + f.Field, Message: f.Message})
		}
	case err != nil:
		r.faults.Check(false, path, "must be an object")
	}
	return members
}

// required reports the texts that an object lacks.
func (r *reader) required(path string, members []event.Extra, keys ...string) {
	for _, key := range keys {
		at := slices.IndexFunc(members, func(m event.Extra) bool { return m.Key == key })
		if at < 0 || isNull(members[at].Value) {
			r.faults.Check(false, path+"."+key, "is required: a string")
		} else {
			r.text(path+".", members[at])
		}
	}
}

// messages reads the messages. It returns the list for Rest too: the user message there has no
// content, which the thread's message has.
func (r *reader) messages(value json.RawMessage) ([]Message, json.RawMessage) {
	list := r.list("messages", value)
	messages := make([]Message, len(list))
	for i, raw := range list {
		path := fmt.Sprintf("messages[%d]", i)
		members := r.object(path, raw)
		r.required(path, members, "id", "role")
		messages[i] = r.message(path, members)
		if i == 0 {
			list[0] = event.WriteObject(slices.DeleteFunc(members, func(m event.Extra) bool { return m.Key == "content" }))
		}
	}
	if list == nil {
		return nil, value
	}
	rest, _ := json.Marshal(list) // its values are valid
	return messages, rest
}

// message reads one message.
func (r *reader) message(path string, members []event.Extra) (m Message) {
	for _, member := range members {
		switch member.Key {
		case "id":
			_ = json.Unmarshal(member.Value, &m.ID) // required has checked it
		case "role":
			_ = json.Unmarshal(member.Value, &m.Role)
			r.faults.Check(m.Role == "" || slices.Contains(roles, m.Role), path+".role", "must be one of "+strings.Join(roles, ", "))
		case "name", "error", "encryptedValue":
			r.text(path+".", member)
		}
	}
	if m.Role == "assistant" {
		r.calls(path+".toolCalls", Or(valueOf(members, "toolCalls"), `[]`))
		r.text(path+".", event.Extra{Key: "content", Value: Or(valueOf(members, "content"), `null`)})
	}
	content := slices.IndexFunc(members, func(m event.Extra) bool { return m.Key == "content" })
	switch {
	case m.Role == "user" && content >= 0 && bytes.HasPrefix(members[content].Value, []byte("[")):
		m.Content.Blocks = r.blocks(path+".content", members[content].Value)
	case m.Role == "user", m.Role == "system", m.Role == "developer":
		r.required(path, members, "content")
	case m.Role == "tool":
		r.required(path, members, "content", "toolCallId")
	}
	if content >= 0 && m.Content.Blocks == nil {
		_ = json.Unmarshal(members[content].Value, &m.Content.Text)
		m.Content.Text = event.Text(m.Content.Text)
	}
	return m
}

// blocks reads the blocks of a user message.
func (r *reader) blocks(path string, value json.RawMessage) []Block {
	list := r.list(path, value)
	blocks := make([]Block, len(list))
	for i, raw := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		members := r.object(at, raw)
		b := &blocks[i]
		texts := map[string]*string{"type": &b.Type, "text": &b.Text, "mimeType": &b.MimeType, "url": &b.URL, "id": &b.ID, "filename": &b.Filename}
		for _, m := range members {
			if text := texts[m.Key]; text != nil {
				*text = r.text(at+".", m)
			}
			if m.Key == "data" && !isNull(m.Value) {
				b.Data = new(string) // no value of it is allowed
			}
		}
		r.faults.Check(b.Type == "text" || b.Type == "binary", at+".type", "must be text or binary")
		if b.Type == "text" {
			r.required(at, members, "text")
		}
	}
	return blocks
}

// tools checks the tools.
func (r *reader) tools(value json.RawMessage) {
	for i, raw := range r.list("tools", value) {
		path := fmt.Sprintf("tools[%d]", i)
		members := r.object(path, raw)
		r.required(path, members, "name", "description")
		at := slices.IndexFunc(members, func(m event.Extra) bool { return m.Key == "parameters" })
		r.faults.Check(at >= 0 && bytes.HasPrefix(members[at].Value, []byte("{")), path+".parameters", "is required: an object")
	}
}

// context checks the facts beside the messages.
func (r *reader) context(value json.RawMessage) {
	for i, raw := range r.list("context", value) {
		path := fmt.Sprintf("context[%d]", i)
		r.required(path, r.object(path, raw), "description", "value")
	}
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// Rest is a RunAgentInput without its ids, the content of its user message and the members that
// the protocol does not know, for an agent. A raw value is nil if it is absent, and "null" if it is
// null.
type Rest struct {
	ParentRunID                           string
	State, Tools, Context, ForwardedProps json.RawMessage
	// User are the members of the user message besides id, role and content, such as
	// encryptedValue.
	User []event.Extra
	// More are the messages after the user message.
	More []json.RawMessage
}

// ReadRest reads what Received.Rest or an empty text says.
func ReadRest(raw []byte) (Rest, error) {
	var r Rest
	if len(raw) == 0 {
		return r, nil
	}
	members, err := event.ReadObject(raw)
	for _, m := range members {
		switch m.Key {
		case "parentRunId":
			err = errors.Join(err, json.Unmarshal(m.Value, &r.ParentRunID))
		case "state":
			r.State = m.Value
		case "tools":
			r.Tools = m.Value
		case "context":
			r.Context = m.Value
		case "forwardedProps":
			r.ForwardedProps = m.Value
		case "messages":
			err = errors.Join(err, r.messages(m.Value))
		}
	}
	if err != nil {
		return Rest{}, fmt.Errorf("the rest of a RunAgentInput: %w", err)
	}
	return r, nil
}

// messages reads the messages of the rest.
func (r *Rest) messages(value json.RawMessage) error {
	if err := json.Unmarshal(value, &r.More); err != nil || len(r.More) == 0 {
		return err
	}
	user, err := event.ReadObject(r.More[0])
	r.More = r.More[1:]
	r.User = slices.DeleteFunc(user, func(m event.Extra) bool { return m.Key == "id" || m.Key == "role" })
	return err
}

// Or returns a value, or another one if it is absent or null.
func Or(value json.RawMessage, other string) json.RawMessage {
	if value == nil || isNull(value) {
		return json.RawMessage(other)
	}
	return value
}

// With returns the JSON of an object with further members, which it does not have yet.
func With(raw json.RawMessage, members []event.Extra) json.RawMessage {
	if len(members) == 0 {
		return raw
	}
	return append(append(raw[:len(raw)-1:len(raw)-1], ','), event.WriteObject(members)[1:]...)
}

// ToolsPrompt returns the block of text of the tools.
func (r *Rest) ToolsPrompt() (string, error) {
	var tools []Tool
	if r.Tools != nil {
		if err := json.Unmarshal(r.Tools, &tools); err != nil {
			return "", err
		}
	}
	return ToolsPrompt(tools)
}

// UnmarshalJSON reads a tool by the exact names of its members.
func (t *Tool) UnmarshalJSON(raw []byte) error {
	members, err := event.ReadObject(raw)
	*t = Tool{Name: textOf(members, "name"), Description: textOf(members, "description"), Parameters: valueOf(members, "parameters")}
	return err
}

// UnmarshalJSON reads a fact by the exact names of its members.
func (c *Context) UnmarshalJSON(raw []byte) error {
	members, err := event.ReadObject(raw)
	*c = Context{textOf(members, "description"), textOf(members, "value")}
	return err
}

// valueOf returns the value of a member; nil for none. Names are compared exactly, as everywhere in the protocol.
func valueOf(members []event.Extra, key string) json.RawMessage {
	if i := slices.IndexFunc(members, func(m event.Extra) bool { return m.Key == key }); i >= 0 {
		return members[i].Value
	}
	return nil
}

// textOf returns the text of a member; empty for any other value.
func textOf(members []event.Extra, key string) (text string) {
	_ = json.Unmarshal(valueOf(members, key), &text)
	return text
}

// Instructions returns the texts of the system and developer messages.
func (r *Rest) Instructions() (texts []string) {
	for _, raw := range r.More {
		if text, ok := instruction(raw); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// Said returns the messages after the user's without the instructions, as the client sent them.
func (r *Rest) Said() []json.RawMessage {
	return slices.DeleteFunc(slices.Clone(r.More), func(raw json.RawMessage) bool {
		_, ok := instruction(raw)
		return ok
	})
}

// instruction returns the text of a system or developer message.
func instruction(raw json.RawMessage) (text string, ok bool) {
	members, _ := event.ReadObject(raw) // the reader has checked it
	role := textOf(members, "role")
	return textOf(members, "content"), role == "system" || role == "developer"
}
