package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

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
	call := m.toolCall()
	return call.Tool, call.Event
}

// toolCall is what the details of a message tell of a call of a tool.
type toolCall struct {
	Tool  string          `json:"tool"`
	Event string          `json:"tool_event"`
	ID    string          `json:"tool_use_id"`
	Error json.RawMessage `json:"error"`
	Card  json.RawMessage `json:"uiSchema"`
}

func (m Message) toolCall() (c toolCall) {
	if len(m.Details) == 0 || json.Unmarshal(m.Details, &c) != nil {
		return toolCall{}
	}
	return c
}

// WithoutResult returns the message without the result of a tool in its details, whose size in bytes takes its place. A
// tool reads with the rights of the people who ask, and more people read the messages of a run.
func (m Message) WithoutResult() Message {
	if !bytes.Contains(m.Details, []byte(`"result"`)) {
		return m
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(m.Details, &members) != nil || members["result"] == nil || members["tool"] == nil && members["tool_event"] == nil && members["tool_use_id"] == nil {
		return m
	}
	result, size := members["result"], 0
	if text := ""; json.Unmarshal(result, &text) == nil {
		size = len(text)
	} else {
		size = len(result)
	}
	delete(members, "result")
	members["result_bytes"] = json.RawMessage(strconv.Itoa(size))
	m.Details, _ = json.Marshal(members) // valid JSON always encodes
	return m
}

// OfMain reports whether the message belongs to the main workstream.
func (m Message) OfMain() bool { return m.Workstream == "" || m.Workstream == Main }

// Ends reports whether the message is the last one of its run: a client that follows the run stops after it.
func (m Message) Ends() bool { return m.OfMain() && (m.Type == Complete || m.Type == Terminated) }

// Finished is a stage of a run's work that has ended, or a call of a tool, which has a name.
type Finished struct {
	Stage   string // StageIntent, StageExecution or StageToolExecution
	Tool    string // of StageToolExecution
	ID      string // the agent's id of the call; empty for none
	Latency time.Duration
	At      time.Time // when it ended
	Failed  bool
	Error   string          // of a call that failed, as its agent told it
	Card    json.RawMessage // the uiSchema of a call's result; nil for none
}

// FinishedOf returns the stages and the calls of tools that the messages of a run tell of, in the order of their ends.
// Each message has its time. The intent ends with the first message behind it of another stage, and the execution with
// the run. The end of a call is that of the open call with its tool_use_id, else of the earliest open call of its tool.
func FinishedOf(begun, ended time.Time, said []Message) (list []Finished) {
	type begin struct {
		toolCall
		workstream string
		at         time.Time
	}
	var open []begin
	var intends, intended bool
	var executes time.Time
	for _, m := range said {
		stage := m.Stage()
		if stage != StageIntent && intends && !intended {
			intended, list = true, append(list, Finished{Stage: StageIntent, Latency: m.Time.Sub(begun), At: m.Time})
		}
		intends = intends || stage == StageIntent
		if executes.IsZero() && (stage == StageExecution || stage == StageToolExecution) {
			executes = m.Time
		}
		switch call := m.toolCall(); call.Event {
		case "started":
			open = append(open, begin{call, m.Workstream, m.Time})
		case "completed", "failed":
			done := Finished{Stage: StageToolExecution, Tool: call.Tool, ID: call.ID, At: m.Time, Failed: call.Event == "failed", Card: call.Card}
			if done.Failed {
				done.Error = m.Text
				if told := text(call.Error); told != nil {
					done.Error = *told
				}
			}
			same := func(b begin) bool { return b.workstream == m.Workstream && b.ID == call.ID && call.ID != "" }
			i := slices.IndexFunc(open, same)
			if i < 0 {
				i = slices.IndexFunc(open, func(b begin) bool {
					return b.workstream == m.Workstream && b.Tool == call.Tool && (b.ID == "" || call.ID == "")
				})
			}
			if i >= 0 {
				done.Latency, open = m.Time.Sub(open[i].at), slices.Delete(open, i, i+1)
			}
			list = append(list, done)
		}
	}
	if intends && !intended {
		list = append(list, Finished{Stage: StageIntent, Latency: ended.Sub(begun), At: ended})
	}
	if !executes.IsZero() {
		list = append(list, Finished{Stage: StageExecution, Latency: ended.Sub(executes), At: ended})
	}
	return list
}
