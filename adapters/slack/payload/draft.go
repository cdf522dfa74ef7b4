package payload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Draft returns the callback in which Slack would send a message. Mentions and channels that the text
// names by their tokens, such as <@U06STGBF4Q0>, stay tokens.
func Draft(d adapters.Draft) []byte {
	channel, kind := cmp.Or(d.Channel, "C0TRY"), "channel"
	switch d.Type {
	case event.ChannelDirect:
		channel, kind = cmp.Or(d.Channel, "D0TRY"), "im"
	case event.ChannelGroup:
		kind = "mpim"
	}
	text := escapeTyped(d.Text)
	if d.Mentions {
		text = "<@" + d.Self.UserID + "> " + text
	}
	inner := map[string]any{
		"type": "message", "channel": channel, "channel_type": kind, "user": cmp.Or(d.Sender, "U0TRY"), "text": text,
		"ts": fmt.Sprintf("%d.%06d", d.At.Unix(), d.At.Nanosecond()/1000),
	}
	if _, root, err := ParseThreadKey(d.Thread); err == nil && root != "" {
		inner["thread_ts"] = root
	}
	raw, _ := json.Marshal(inner) // texts have no error
	return Callback(d.Self, raw)
}

// escapeTyped is the reverse of decode for typed text with tokens.
func escapeTyped(text string) string {
	var out strings.Builder
	end := 0
	for _, at := range typedTokens.FindAllStringIndex(text, -1) {
		out.WriteString(entities.Replace(text[end:at[0]]))
		out.WriteString(text[at[0]:at[1]])
		end = at[1]
	}
	out.WriteString(entities.Replace(text[end:]))
	return out.String()
}

var (
	typedTokens = regexp.MustCompile(`<(?:@[UW][A-Z0-9]+|#C[A-Z0-9]+(?:\|[^<>]*)?|!(?:here|channel|everyone|subteam\^S[A-Z0-9]+))>`)
	entities    = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
)
