package stream

import "encoding/json"

// The stages of a run's work.
const (
	StageIntent        = "intent"
	StageExecution     = "execution"
	StageToolExecution = "tool_execution"
	StageAnswer        = "answer"
)

// Stage returns the stage of the run's work that the message reports. The details of a
// message about a tool call name the tool.
func (m Message) Stage() string {
	switch m.Type {
	case Answer, StreamingChunk:
		return StageAnswer
	case BatchProgress:
		return StageToolExecution
	}
	var details struct {
		Tool  json.RawMessage `json:"tool"`
		Tools json.RawMessage `json:"tools"`
		Event json.RawMessage `json:"tool_event"`
	}
	if json.Unmarshal(m.Details, &details) == nil && (details.Tool != nil || details.Tools != nil || details.Event != nil) {
		return StageToolExecution
	}
	if m.Type == Thought || m.Type == Plan {
		return StageIntent
	}
	return StageExecution
}

// Tool returns the name of the tool that the details of a message tell of, and the event of its call: "started",
// "progress", "completed" or "failed". Both are empty for none.
func (m Message) Tool() (name, happened string) {
	var details struct {
		Tool  string `json:"tool"`
		Event string `json:"tool_event"`
	}
	if len(m.Details) == 0 || json.Unmarshal(m.Details, &details) != nil {
		return "", ""
	}
	return details.Tool, details.Event
}

// OfMain reports whether the message belongs to the main workstream.
func (m Message) OfMain() bool { return m.Workstream == "" || m.Workstream == Main }
