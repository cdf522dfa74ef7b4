package remote

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/stream"
	"parley/ingest/event"
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

// TakesGiven implements turn.TakesGiven.
func (c ClientTools) TakesGiven() assembly.Native {
	return assembly.Native{Tools: c.ClientTools == FunctionsTools}
}

// Tools returns the tools of one run.
func (c ClientTools) Tools(input assembly.Input) (t Tools, err error) {
	if c.ClientTools == FunctionsTools {
		err = json.Unmarshal(runinput.Or(input.Given.Tools, `[]`), &t.tools)
	}
	return t, err
}

// Tools are the tools that the client offers to the model, and the model's calls. The zero value offers none.
type Tools struct {
	tools  []runinput.Tool
	calls  []runinput.Call // of offered tools
	called string          // the name of the last call of another tool
}

// Function is a tool in a form that model servers take.
type Function struct {
	Name        string
	Description string
	Schema      json.RawMessage // of an object
}

// Functions returns the offered tools; of several with one name the first.
func (t *Tools) Functions() (list []Function) {
	for _, tool := range t.tools {
		name := runinput.Safe(tool.Name)
		if !slices.ContainsFunc(list, func(f Function) bool { return f.Name == name }) {
			list = append(list, Function{name, tool.Description, objectSchema(tool.Parameters)})
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

// Call notes a call of the model and returns the message about it, with the client's name of the tool.
func (t *Tools) Call(id, name, arguments string) stream.Message {
	at := slices.IndexFunc(t.tools, func(tool runinput.Tool) bool { return runinput.Safe(tool.Name) == name })
	if at < 0 {
		t.called = name
		return ToolCall(id, name, arguments)
	}
	if id == "" {
		id = fmt.Sprintf("call_%d", len(t.calls)+1)
	}
	call := runinput.Call{ID: id, Name: t.tools[at].Name, Arguments: arguments}
	t.calls = append(t.calls, call)
	return ToolCall(id, call.Name, arguments)
}

// UsesTools reports whether messages have calls of tools.
func UsesTools(messages []assembly.Message) bool {
	return slices.ContainsFunc(messages, func(m assembly.Message) bool { return len(m.Calls) > 0 })
}
