package payload

import (
	"cmp"
	"encoding/json"
	"strings"

	"parley/adapters"
)

// Draft returns the body with which a client would send a message.
func Draft(d adapters.Draft) []byte {
	thread, ok := strings.CutPrefix(string(d.Thread), string(ThreadKey(d.Workspace, "")))
	if thread = cmp.Or(thread, d.Channel); !ok && !IsUUID(thread) {
		thread = NewID()
	}
	sender := cmp.Or(d.Sender, "try")
	raw, _ := json.Marshal(map[string]any{ // texts have no error
		"content": d.Text, "thread_id": thread, "message_id": NewID(),
		"metadata": map[string]any{"source": "web", "sender_id": "web:" + sender, "sender_display_name": cmp.Or(d.Name, sender), "sender_type": "human"},
	})
	return raw
}
