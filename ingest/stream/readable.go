package stream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
)

// Readable is a message with readable names, as user interfaces take it.
type Readable struct {
	Time       Instant         `json:"timestamp"`
	RunID      string          `json:"workflow_run_id"`
	Type       Type            `json:"type"`
	Text       string          `json:"message"`
	Details    json.RawMessage `json:"details,omitempty"`
	Workstream string          `json:"workstream_id,omitempty"`
	ActivityID string          `json:"activity_id,omitempty"` // of a chunk, it is in the details
	HTML       string          `json:"html,omitempty"`        // never read
}

// The details of a chunk in the readable form.
const (
	streamingID = "streaming_id"
	isFinal     = "is_final"
	activityID  = "activity_id"
)

// Message returns the compact form, which has no run id. Details that are null, false, 0 or
// an empty text are left out.
func (r Readable) Message() (Message, error) {
	m := Message{Type: r.Type, Text: r.Text, Workstream: r.Workstream, Time: r.Time.Time, ActivityID: r.ActivityID}
	if m.Workstream == Main {
		m.Workstream = ""
	}
	if r.Type != StreamingChunk {
		if truthy(r.Details) {
			m.Details = r.Details
		}
		return m, nil
	}
	details := object(r.Details)
	m.Final = truthy(details[isFinal])
	delete(details, isFinal)
	if id := text(details[activityID]); id != nil {
		m.ActivityID = *id
		delete(details, activityID)
	} else if details[activityID] != nil {
		return m, fmt.Errorf("details.%s: must be a string", activityID)
	}
	if id := text(details[streamingID]); id != nil && *id == cmp.Or(r.Workstream, Main) {
		delete(details, streamingID)
	}
	if len(details) > 0 {
		m.Details, _ = json.Marshal(details) // members of a JSON object always encode
	}
	return m, nil
}

// Readable returns the readable form of a message of a run. The details of a chunk tell its activity,
// its stream and whether it is the last one.
func (m Message) Readable(run string) Readable {
	r := Readable{Time: Instant{m.Time}, RunID: run, Type: m.Type, Text: m.Text, Details: m.Details, Workstream: cmp.Or(m.Workstream, Main), HTML: m.HTML}
	if m.Type != StreamingChunk {
		r.ActivityID = m.ActivityID
		return r
	}
	details := object(m.Details)
	if text(details[streamingID]) == nil {
		details[streamingID], _ = json.Marshal(r.Workstream) // a text always encodes
	}
	details[isFinal] = json.RawMessage(strconv.FormatBool(m.Final))
	if m.ActivityID != "" {
		details[activityID], _ = json.Marshal(m.ActivityID)
	}
	r.Details, _ = json.Marshal(details) // members of a JSON object always encode
	return r
}

// object returns the members of a JSON object; none for another value.
func object(raw json.RawMessage) map[string]json.RawMessage {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return map[string]json.RawMessage{}
	}
	return members
}

// text returns a JSON text; nil for another value.
func text(raw json.RawMessage) (s *string) {
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return s
}

// truthy reports whether a program in JavaScript takes the value for true.
func truthy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", `""`:
		return false
	}
	return true
}
