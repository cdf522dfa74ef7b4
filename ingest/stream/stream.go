// Package stream defines the typed messages of the agent message system that an agent
// emits during a run.
//
// An agent emits messages in order. It emits tokens as STREAMING_CHUNKs; the ANSWER after
// them contains the whole text and replaces them.
package stream

import (
	"encoding/json"
	"strconv"
	"time"
)

// Type is the type of a message. Unknown numbers stay unchanged.
type Type int64

// The types, with their numbers on the wire.
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

// String returns the type's name, or the number of an unknown type.
func (t Type) String() string {
	if t >= 0 && int(t) < len(names) {
		return names[t]
	}
	return strconv.Itoa(int(t))
}

// Main is the default workstream of a run.
const Main = "main"

// Message is one message of an agent. As JSON it is a compact message; see Readable for
// the other form.
type Message struct {
	Type       Type
	Text       string
	Workstream string // empty for Main
	Details    json.RawMessage
	Final      bool // the last chunk of a streamed text
	Time       time.Time
	// ActivityID is common to the chunks of a text and the message that replaces them.
	ActivityID string
	// HTML is the text for pages, which only their readers set.
	HTML string
}
