package stream

import (
	"cmp"
	"encoding/json"
	"time"
)

// Readable returns the readable form of a message of a run. A message without a time gets
// now. The details of a chunk contain its activity id, whether it is the last one, and the
// id of its text, which is the workstream unless the details name another.
func (m Message) Readable(runID string, now time.Time) Readable {
	r := Readable{Time: Instant{m.Time}, RunID: runID, Type: m.Type, Text: m.Text, Details: m.Details, Workstream: cmp.Or(m.Workstream, Main)}
	if m.Time.IsZero() {
		r.Time.Time = now
	}
	if m.Type != StreamingChunk {
		return r
	}
	details := object(m.Details)
	if text(details[streamingID]) == nil {
		details[streamingID] = encode(r.Workstream)
	}
	if details[isFinal] = encode(m.Final); m.ActivityID != "" {
		details[activityID] = encode(m.ActivityID)
	}
	r.Details = encode(details)
	return r
}

// encode returns the JSON of a text, a bool or an object, which always encodes.
func encode(value any) json.RawMessage {
	raw, _ := json.Marshal(value)
	return raw
}
