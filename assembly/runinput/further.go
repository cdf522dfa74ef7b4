package runinput

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/ingest/event"
)

// Further is a message of a client behind the user's: an assistant's, or a tool's result.
type Further struct {
	Role    string // assistant or tool
	Content string
	Calls   []Call // of an assistant
	CallID  string // of a tool: the call that it answers
}

// Call is a call of a function. As JSON it is the protocol's ToolCall.
type Call struct {
	ID, Name string
	// Arguments are the JSON that the caller wrote; it may be invalid.
	Arguments string
}

// MarshalJSON returns {"id","type":"function","function":{"name","arguments"}}.
func (c Call) MarshalJSON() ([]byte, error) {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	return json.Marshal(struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{c.ID, "function", function{c.Name, c.Arguments}})
}

// Object returns the arguments as a JSON object. Arguments that are no object become its member "arguments".
func (c Call) Object() json.RawMessage {
	var object map[string]json.RawMessage
	raw := json.RawMessage(strings.TrimSpace(c.Arguments))
	switch {
	case len(raw) == 0:
		return json.RawMessage(`{}`)
	case !event.IsDeep(raw) && json.Unmarshal(raw, &object) == nil && object != nil:
		return raw
	}
	raw, _ = json.Marshal(map[string]string{"arguments": c.Arguments}) // a text always encodes
	return raw
}

// Further returns the messages of the assistant and of tools, in their order.
func (r *Rest) Further() (list []Further) {
	for _, raw := range r.More {
		members, _ := event.ReadObject(raw) // the reader has checked it
		m := Further{Role: textOf(members, "role"), Content: event.Text(textOf(members, "content"))}
		switch m.Role {
		case "assistant":
			m.Calls = callsOf(valueOf(members, "toolCalls"))
		case "tool":
			m.CallID = textOf(members, "toolCallId")
			if fault := textOf(members, "error"); fault != "" {
				m.Content = strings.TrimSpace("Error: " + event.Text(fault) + "\n" + m.Content)
			}
		default:
			continue
		}
		list = append(list, m)
	}
	return list
}

func callsOf(value json.RawMessage) (calls []Call) {
	var list []json.RawMessage
	_ = json.Unmarshal(value, &list) // the reader has checked it
	for _, raw := range list {
		call, _ := event.ReadObject(raw)
		function, _ := event.ReadObject(valueOf(call, "function"))
		calls = append(calls, Call{textOf(call, "id"), event.Text(textOf(function, "name")), event.Text(textOf(function, "arguments"))})
	}
	return calls
}

// calls checks the calls of an assistant's message.
func (r *reader) calls(path string, value json.RawMessage) {
	for i, raw := range r.list(path, value) {
		at := fmt.Sprintf("%s[%d]", path, i)
		members := r.object(at, raw)
		r.required(at, members, "id")
		function := valueOf(members, "function")
		if !bytes.HasPrefix(function, []byte("{")) {
			r.faults.Check(false, at+".function", "is required: an object")
			continue
		}
		r.required(at+".function", r.object(at+".function", function), "name", "arguments")
	}
}

// The forms of names and ids that OpenAI and Anthropic take.
// https://platform.openai.com/docs/api-reference/chat/create, https://docs.anthropic.com/en/api/messages
var safe = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Safe returns a name or an id of a client in the form that model servers take. A text of another form
// becomes a similar one with a part of its hash.
func Safe(text string) string {
	if safe.MatchString(text) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	plain := strings.Map(func(r rune) rune {
		if r < 128 && safe.MatchString(string(r)) {
			return r
		}
		return '_'
	}, event.Beginning(text, 40))
	return plain + "_" + hex.EncodeToString(sum[:6])
}
