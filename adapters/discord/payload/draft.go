package payload

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Draft returns the frame in which the gateway would send a message.
func Draft(d adapters.Draft) []byte {
	text := d.Text
	if d.Mentions {
		text = "<@" + d.Self.UserID + "> " + text
	}
	mentions := []map[string]any{}
	if id := d.Self.UserID; strings.Contains(text, "<@"+id+">") || strings.Contains(text, "<@!"+id+">") {
		mentions = append(mentions, map[string]any{"id": id, "username": "bot", "bot": true})
	}
	sender := cmp.Or(d.Sender, "3")
	message := map[string]any{
		"id": strconv.FormatInt((d.At.UnixMilli()-epoch)<<22, 10), "channel_id": cmp.Or(d.Channel, "2"), "type": 0, "content": text,
		"timestamp": d.At.UTC().Format("2006-01-02T15:04:05.000000+00:00"), "mentions": mentions, "attachments": []any{},
		"author": map[string]any{"id": sender, "username": cmp.Or(d.Name, sender), "global_name": cmp.Or(d.Name, sender)},
	}
	if d.Type != event.ChannelDirect {
		message["guild_id"] = cmp.Or(d.Server, "1")
		message["member"] = map[string]any{}
	}
	raw, _ := json.Marshal(map[string]any{"op": 0, "t": "MESSAGE_CREATE", "s": 1, "d": message}) // texts have no error
	return raw
}
