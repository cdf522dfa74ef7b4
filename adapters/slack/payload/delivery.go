package payload

import (
	"encoding/json"
	"path"
	"strings"

	"parley/ingest/event"
)

// DeliveryMetadata is the event_type of the metadata of our posts. Its event_payload is
// {"key": <the delivery's idempotency key>}.
const DeliveryMetadata = "parley_delivery"

// Key returns the key of the delivery that posted the message; empty if there is none.
func (m *Message) Key() string {
	key := deliveryKey(m.Metadata)
	for i := 0; i < len(m.Files) && key == ""; i++ {
		key = fileKey(m.Files[i].Name)
	}
	return key
}

// deliveryKey returns the idempotency key in the metadata of a post of ours.
func deliveryKey(raw json.RawMessage) string {
	var metadata struct {
		EventType    string `json:"event_type"`
		EventPayload struct {
			Key string `json:"key"`
		} `json:"event_payload"`
	}
	if json.Unmarshal(raw, &metadata) != nil || metadata.EventType != DeliveryMetadata {
		return ""
	}
	return event.Text(metadata.EventPayload.Key)
}

// FileName returns a file's name with the post's key before its extension.
func FileName(name, key string) string {
	extension := path.Ext(name)
	if len(extension) > 16 { // a part of a sentence; fileKey would take it for the extension
		name, extension = strings.ReplaceAll(name, ".", "_"), ""
	}
	return FirstOf(strings.TrimSuffix(name, extension), "file") + "-" + key + extension
}

// fileKey returns the key in a file's name; empty if there is none.
func fileKey(name string) string {
	base := strings.TrimSuffix(name, path.Ext(name))
	key := base[strings.LastIndexByte(base, '-')+1:]
	if key == base || len(key) > 25 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return ""
	}
	return key
}
