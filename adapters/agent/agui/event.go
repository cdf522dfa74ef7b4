package agui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/adapters/agent/remote"
)

// streamEvent is one event of a run, with the fields that this package reads. A null reads as
// absent, as older versions wrote it.
type streamEvent struct {
	Type            string          `json:"type"`
	MessageID       string          `json:"messageId"`
	Role            string          `json:"role"`
	Delta           json.RawMessage `json:"delta"` // a string, or a JSON Patch
	ToolCallID      string          `json:"toolCallId"`
	ToolCallName    string          `json:"toolCallName"`
	Content         json.RawMessage `json:"content"`
	StepName        string          `json:"stepName"`
	ActivityType    string          `json:"activityType"`
	Message         string          `json:"message"`
	Code            string          `json:"code"`
	Name            string          `json:"name"`
	SubagentRunID   string          `json:"subagentRunId"`
	ParentSubagent  string          `json:"parentSubagentRunId"`
	ParentMessageID string          `json:"parentMessageId"`
	Snapshot        json.RawMessage `json:"snapshot"`
	Messages        []snapshot      `json:"messages"`
	Outcome         *outcome        `json:"outcome"`
	Usage           json.RawMessage `json:"usage"`
	Result          json.RawMessage `json:"result"`

	raw []byte
}

// snapshot is a message of a MESSAGES_SNAPSHOT.
type snapshot struct {
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// outcome is the outcome of RUN_FINISHED.
type outcome struct {
	Type       string            `json:"type"`
	Interrupts []json.RawMessage `json:"interrupts"`
}

// newer changes the names of earlier versions, such as THINKING_START and
// THINKING_TEXT_MESSAGE_START, to those of 1.0.
var newer = strings.NewReplacer("THINKING_TEXT_MESSAGE_", "REASONING_MESSAGE_", "THINKING_", "REASONING_")

// thinking is the id of the reasoning of earlier versions, which gave it none.
const thinking = "thinking"

// needs are the types of version 1.0, with the fields that an event of the type must have.
var needs = map[string][]string{
	"TEXT_MESSAGE_START":        {"messageId"},
	"TEXT_MESSAGE_CONTENT":      {"messageId", "delta"},
	"TEXT_MESSAGE_END":          {"messageId"},
	"TOOL_CALL_START":           {"toolCallId", "toolCallName"},
	"TOOL_CALL_ARGS":            {"toolCallId", "delta"},
	"TOOL_CALL_END":             {"toolCallId"},
	"TOOL_CALL_RESULT":          {"toolCallId", "content"},
	"STATE_SNAPSHOT":            {"snapshot"},
	"STATE_DELTA":               {"delta"},
	"MESSAGES_SNAPSHOT":         {"messages"},
	"ACTIVITY_SNAPSHOT":         {"messageId", "activityType", "content"},
	"ACTIVITY_DELTA":            {"messageId", "activityType"},
	"CUSTOM":                    {"name"},
	"STEP_STARTED":              {"stepName"},
	"STEP_FINISHED":             {"stepName"},
	"REASONING_START":           {"messageId"},
	"REASONING_MESSAGE_START":   {"messageId"},
	"REASONING_MESSAGE_CONTENT": {"messageId", "delta"},
	"REASONING_MESSAGE_END":     {"messageId"},
	"REASONING_END":             {"messageId"},
	"SUBAGENT_STARTED":          {"subagentRunId", "name"},
	"SUBAGENT_FINISHED":         {"subagentRunId"},
	"SUBAGENT_ERROR":            {"subagentRunId", "message"},

	"RUN_STARTED": nil, "RUN_FINISHED": nil, "RUN_ERROR": nil, "RAW": nil, "REASONING_ENCRYPTED_VALUE": nil,
	"TEXT_MESSAGE_CHUNK": nil, "TOOL_CALL_CHUNK": nil, "REASONING_MESSAGE_CHUNK": nil,
}

// nullable are the required fields whose value may be null.
var nullable = map[string]bool{"snapshot": true}

// decode reads one streamEvent, in the names of version 1.0. A known event that lacks a field, or
// has one of another type, is an error that names the field.
func decode(data []byte) (streamEvent, error) {
	if e, ok := deltaOf(data); ok {
		return e, nil
	}
	return decodeAny(data)
}

func decodeAny(data []byte) (streamEvent, error) {
	var e streamEvent
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return e, err
	}
	e.Type = text(fields["type"])
	if e.Type == "" {
		return e, fmt.Errorf("type: is required")
	}
	if name := newer.Replace(e.Type); name != e.Type && known(name) {
		if _, has := fields["messageId"]; !has {
			fields["messageId"] = json.RawMessage(`"` + thinking + `"`)
		}
		fields["type"] = json.RawMessage(`"` + name + `"`)
		data, _ = json.Marshal(fields)
		e.Type = name
	}
	if !known(e.Type) {
		e.raw = data
		return e, nil
	}
	for _, name := range needs[e.Type] {
		if value, ok := fields[name]; !ok || string(value) == "null" && !nullable[name] {
			return e, fmt.Errorf("%s.%s: is required", e.Type, name)
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("%s: %w", e.Type, err)
	}
	e.raw = data
	return e, e.check()
}

// deltaOf returns an event that brings a part of a text and nothing else, as nearly all events of a run do; false for any
// other one.
func deltaOf(data []byte) (e streamEvent, ok bool) {
	var kind, id []byte
	ok = remote.Members(data, func(key, value []byte) bool {
		switch string(key) {
		case "type":
			kind = value
		case "messageId":
			id = value
		case "delta":
			e.Delta = value
			return value[0] == '"'
		default:
			return string(key) == "timestamp" || string(key) == "rawEvent"
		}
		return value[0] == '"' && bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value)
	})
	if !ok || id == nil || e.Delta == nil {
		return e, false
	}
	switch string(kind) {
	case `"TEXT_MESSAGE_CONTENT"`:
		e.Type = "TEXT_MESSAGE_CONTENT"
	case `"REASONING_MESSAGE_CONTENT"`:
		e.Type = "REASONING_MESSAGE_CONTENT"
	default:
		return e, false
	}
	e.MessageID, e.raw = string(id[1:len(id)-1]), data
	return e, true
}

// check returns the fault of a field with a known set of values.
func (e streamEvent) check() error {
	switch {
	case strings.HasPrefix(e.Type, "TEXT_MESSAGE_") && e.Role != "" && !slices.Contains([]string{"assistant", "user", "system", "developer"}, e.Role):
		return fmt.Errorf("%s.role: must be assistant, user, system or developer", e.Type)
	case strings.HasPrefix(e.Type, "REASONING_") && e.Role != "" && e.Role != "reasoning" && e.Role != "assistant":
		return fmt.Errorf("%s.role: must be reasoning", e.Type)
	case e.Type == "RUN_FINISHED" && e.Outcome != nil && !slices.Contains([]string{"success", "interrupt", "cancelled"}, e.Outcome.Type):
		return fmt.Errorf("RUN_FINISHED.outcome: must be success, interrupt or cancelled")
	case e.Type == "RUN_FINISHED" && e.Outcome != nil && e.Outcome.Type == "interrupt" && len(e.Outcome.Interrupts) == 0:
		return fmt.Errorf("RUN_FINISHED.outcome: an interrupt must list at least one interrupt")
	}
	return nil
}

// mustBegin returns the fault of a chunk event that begins a message or a tool call.
func (e streamEvent) mustBegin(kind string) error {
	switch {
	case e.chunkID(kind) == "" && kind == "TOOL_CALL":
		return fmt.Errorf("%s.toolCallId: is required in the first chunk", e.Type)
	case e.chunkID(kind) == "":
		return fmt.Errorf("%s.messageId: is required in the first chunk", e.Type)
	case kind == "TOOL_CALL" && e.ToolCallName == "":
		return fmt.Errorf("%s.toolCallName: is required in the first chunk", e.Type)
	}
	return nil
}

// typeOf returns the type of an event of which only the beginning is known; empty if that does not tell it. The
// type of a snapshot may stand behind the state.
func typeOf(beginning []byte) string {
	members := json.NewDecoder(bytes.NewReader(beginning))
	if begin, err := members.Token(); err != nil || begin != json.Delim('{') {
		return ""
	}
	for {
		name, err := members.Token()
		var value json.RawMessage
		switch {
		case err != nil:
			return ""
		case members.Decode(&value) != nil && name == "snapshot":
			return "STATE_SNAPSHOT"
		case value == nil:
			return ""
		}
		if name == "type" {
			return text(value)
		}
	}
}

// known reports whether version 1.0 has an event of the type.
func known(kind string) bool {
	_, ok := needs[kind]
	return ok
}

// text returns the value of a JSON string, and an empty text for anything else.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
