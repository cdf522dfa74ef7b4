package payload

import (
	"cmp"
	"encoding/json"

	"github.com/google/uuid"

	"parley/adapters"
	"parley/ingest/event"
)

// Draft returns the webhook in which a BlueBubbles server would send a message. There are no mentions: a
// text may have a wake word.
func Draft(d adapters.Draft) []byte {
	sender := cmp.Or(d.Sender, "+15550100000")
	chat := "any;+;" + cmp.Or(d.Channel, "chat0")
	if d.Type == event.ChannelDirect {
		chat = "any;-;" + cmp.Or(d.Channel, sender)
	}
	raw, _ := json.Marshal(map[string]any{"type": NewMessage, "data": map[string]any{ // texts have no error
		"guid": uuid.NewString(), "text": d.Text, "dateCreated": d.At.UnixMilli(), "isFromMe": false, "itemType": 0,
		"handle": map[string]any{"address": sender, "service": "iMessage", "displayName": d.Name},
		"chats":  []any{map[string]any{"guid": chat}},
	}})
	return raw
}
