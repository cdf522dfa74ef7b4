package payload

import (
	"encoding/json"

	"parley/ingest/event"
)

// Callback wraps an event in the payload in which Slack would have sent it.
func Callback(self event.Self, inner []byte) []byte {
	installed := `{"team_id":` + jsonString(self.TeamID) + `,"user_id":` + jsonString(self.UserID) + `,"is_bot":true}`
	return []byte(`{"type":"event_callback","team_id":` + jsonString(self.TeamID) + `,"authorizations":[` + installed + `],"event":` + string(inner) + `}`)
}

// WithChannel returns the event for a message of history: the message's own members,
// unchanged, and its channel. The kind is empty if it is unknown.
func WithChannel(raw []byte, channel, kind string) []byte {
	body := append([]byte(nil), raw[:len(raw)-1]...) // if a member is there twice, the last one counts
	return append(body, `,"channel":`+jsonString(channel)+`,"channel_type":`+jsonString(kind)+`}`...)
}

// Change returns the event of a message's last edit, which was at the ts when, or of its deletion.
func Change(channel, kind, when string, message []byte) []byte {
	return []byte(`{"type":"message","subtype":"message_changed","hidden":true,"channel":` + jsonString(channel) +
		`,"channel_type":` + jsonString(kind) + `,"ts":` + jsonString(when) + `,"message":` + string(message) + `}`)
}

// jsonString returns s as a JSON string.
func jsonString(s string) string {
	raw, _ := json.Marshal(s) // encoding a string never fails
	return string(raw)
}
