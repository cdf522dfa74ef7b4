// Package stream defines what an agent says while it works: typed messages of
// the agent message system.
//
// An agent emits messages in order. Tokens are STREAMING_CHUNKs; the ANSWER that
// ends them carries the whole text and replaces them.
package stream

import (
	"encoding/json"
	"strconv"
	"time"
)

// Type is the kind of a message. Numbers outside the list are kept as they are.
type Type int

// The types, with the numbers that stand on the wire.
const (
	System         Type = 0
	Thought        Type = 1
	Plan           Type = 2
	Update         Type = 3
	Complete       Type = 4
	Warning        Type = 5
	Error          Type = 6
	Answer         Type = 7
	Question       Type = 8
	RequestInput   Type = 9
	Idle           Type = 10
	Terminated     Type = 11
	StreamingChunk Type = 12
	BatchProgress  Type = 13
)

var names = [...]string{
	"SYSTEM", "THOUGHT", "PLAN", "UPDATE", "COMPLETE", "WARNING", "ERROR", "ANSWER",
	"QUESTION", "REQUEST_INPUT", "IDLE", "TERMINATED", "STREAMING_CHUNK", "BATCH_PROGRESS",
}

// String is the type's name, or its number where it has none.
func (t Type) String() string {
	if t >= 0 && int(t) < len(names) {
		return names[t]
	}
	return strconv.Itoa(int(t))
}

// Main is the workstream of a run that has no other.
const Main = "main"

// Message is one thing that an agent says.
type Message struct {
	Type       Type            `json:"t"`
	Text       string          `json:"m,omitempty"`
	Workstream string          `json:"w,omitempty"` // empty is Main
	Details    json.RawMessage `json:"d,omitempty"`
	Final      bool            `json:"f,omitempty"` // the last chunk of a streamed text
	Time       time.Time       `json:"-"`
	// ActivityID joins the chunks of a text and the message that replaces them.
	ActivityID string `json:"i,omitempty"`
}
