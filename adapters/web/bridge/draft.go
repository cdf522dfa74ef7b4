package bridge

import (
	"cmp"
	"encoding/json"
	"strings"

	"parley/adapters"
	"parley/adapters/web/payload"
	"parley/ingest/event"
)

// Draft returns the request with which the program would send a message.
func Draft(d adapters.Draft) []byte {
	channel, thread, known := readThread(d.Workspace, d.Thread)
	if !known {
		channel = cmp.Or(d.Channel, "try")
	}
	sender := cmp.Or(strings.TrimPrefix(d.Sender, d.Workspace+"/"), "try")
	body := map[string]any{
		"id": payload.NewID(), "content": d.Text, "mentioned": d.Mentions,
		"channel":  map[string]any{"id": channel, "type": cmp.Or(d.Type, event.ChannelRoom)},
		"metadata": map[string]any{"sender_id": sender, "sender_display_name": cmp.Or(d.Name, sender), "sender_type": event.Human},
	}
	if thread != "" {
		body["thread"] = thread
	}
	if !d.At.IsZero() {
		body["sent_at"] = d.At
	}
	raw, _ := json.Marshal(body) // texts and times always encode
	return raw
}
