package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/stream"
)

// The forms in which a model gets the tools of a client of the run protocol.
const (
	PromptTools    = "prompt"    // a block of text; the model cannot call them
	FunctionsTools = "functions" // functions of the model's protocol
)

// ClientTools is the setting of agents whose protocol has functions.
type ClientTools struct {
	// ClientTools is PromptTools or FunctionsTools.
	ClientTools string `yaml:"client_tools"`
}

// DefaultClientTools returns the defaults.
func DefaultClientTools() ClientTools { return ClientTools{PromptTools} }

// Check adds the faults of the setting.
func (c ClientTools) Check(faults *event.FieldErrors) {
	faults.Check(c.ClientTools == PromptTools || c.ClientTools == FunctionsTools, "client_tools", "must be prompt or functions")
}

// OtherTools is the setting of models that may call the tools of other servers.
type OtherTools struct {
	// MCP are the servers of the Model Context Protocol.
	MCP []agent.ToolServer `yaml:"mcp"`
}

// ToolServers implements agent.ToolUser.
func (s OtherTools) ToolServers() []agent.ToolServer { return s.MCP }

// Check adds the faults of the setting.
func (s OtherTools) Check(faults *event.FieldErrors) {
	for i, server := range s.MCP {
		at := fmt.Sprintf("mcp[%d].", i)
		_, isAddress := adapters.ParseAddress(server.URL)
		faults.Check(isAddress, at+"url", "must be the http or https address of the server, such as https://tools.example.com/mcp, without credentials")
		faults.Check(server.Timeout >= 0, at+"timeout", "must be more than 0s")
		same := slices.ContainsFunc(s.MCP[:i], func(other agent.ToolServer) bool { return other.URL == server.URL })
		faults.Check(!same, at+"url", "is the address of an earlier server: name each server once")
	}
}

// TakesGiven implements turn.TakesGiven.
func (c ClientTools) TakesGiven() assembly.Native {
	return assembly.Native{Tools: c.ClientTools == FunctionsTools}
}

// Tools returns the tools of one request.
func (c ClientTools) Tools(input assembly.Input) (t Tools, err error) {
	t.ours, t.called = input.Tools, input.Called
	if c.ClientTools == FunctionsTools {
		err = json.Unmarshal(runinput.Or(input.Given.Tools, `[]`), &t.clients)
	}
	return t, err
}

// Tools are the tools that Parley and the client offer to the model, and the model's calls. The zero value offers
// none.
type Tools struct {
	ours, clients []runinput.Tool
	called        Called // takes the calls if one is for Parley
	calls         []runinput.Call
	goesOn        bool   // one of the calls is for Parley
	unknown       string // the name of the last call of a tool that was not offered
}

// Function is a tool in a form that model servers take.
type Function struct {
	Name        string
	Description string
	Schema      json.RawMessage // of an object

	of runinput.Tool
}

// Functions returns the offered tools; of several with one name the first.
func (t *Tools) Functions() (list []Function) {
	for _, tool := range slices.Concat(t.ours, t.clients) {
		name := runinput.Safe(tool.Name)
		if !slices.ContainsFunc(list, func(f Function) bool { return f.Name == name }) {
			list = append(list, Function{name, tool.Description, objectSchema(tool.Parameters), tool})
		}
	}
	return list
}

// objectSchema returns a schema with the members that model servers require.
func objectSchema(schema json.RawMessage) json.RawMessage {
	members, err := event.ReadObject(schema)
	if err != nil {
		return schema
	}
	for _, required := range []event.Extra{{Key: "type", Value: json.RawMessage(`"object"`)}, {Key: "properties", Value: json.RawMessage(`{}`)}} {
		if !slices.ContainsFunc(members, func(m event.Extra) bool { return m.Key == required.Key }) {
			members = append(members, required)
		}
	}
	return event.WriteObject(members)
}

// Call notes a call of the model and returns the message about it, with the offered name of the tool. If Parley
// offers tools, it also answers a call of a tool that nobody offers.
func (t *Tools) Call(id, name, arguments string) stream.Message {
	offered := slices.Concat(t.ours, t.clients)
	find := func(name string) int {
		return slices.IndexFunc(offered, func(tool runinput.Tool) bool { return runinput.Safe(tool.Name) == name })
	}
	at := find(name)
	if at < 0 { // some models write the namespace of their template
		at = find(strings.TrimPrefix(name, "functions."))
	}
	switch {
	case at >= 0:
		name = offered[at].Name
	case len(t.ours) == 0:
		t.unknown = name
		return ToolCall(id, name, arguments)
	}
	t.goesOn = t.goesOn || at < len(t.ours)
	if id == "" {
		id = fmt.Sprintf("call_%d", len(t.calls)+1)
	}
	t.calls = append(t.calls, runinput.Call{ID: id, Name: name, Arguments: arguments})
	if at < len(t.ours) {
		return ownCall(id, name, arguments)
	}
	return ToolCall(id, name, arguments)
}

// ownCall returns the message that a model calls a tool that Parley offers. It has only the names of the arguments, because
// their values may repeat what such a tool has read with the rights of the people who ask.
func ownCall(id, name, arguments string) stream.Message {
	keys := []string{}
	members, _ := event.ReadObject([]byte(arguments)) // the tool refuses what cannot be read
	for _, m := range members {
		keys = append(keys, m.Key)
	}
	details, _ := json.Marshal(map[string]any{"tool": name, "tool_event": "started", "tool_use_id": id, "argument_keys": keys}) // strings
	return stream.Message{Type: stream.Update, Text: name, Details: details}
}

// UsesTools reports whether messages have calls of tools.
func UsesTools(messages []assembly.Message) bool {
	return slices.ContainsFunc(messages, func(m assembly.Message) bool { return len(m.Calls) > 0 })
}
