package payload_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/adapters/adaptertest"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// TestTheWorkOfAMessageIsLinear reads messages of many parts of each kind.
func TestTheWorkOfAMessageIsLinear(t *testing.T) {
	const with = `{"op":0,"t":"MESSAGE_CREATE","d":{"id":"1100000000000000000","channel_id":"2","guild_id":"3","author":{"id":"5","username":"a"},%s}}`
	grows := map[string]func(n int) []byte{}
	for _, piece := range []string{"<@1>", "<@", "`", "```\n", "\\", "> ", "<:a:1>", "<t:1>", "||"} {
		grows["the text "+piece] = func(n int) []byte {
			content, _ := json.Marshal(strings.Repeat(piece, n))
			return fmt.Appendf(nil, with, `"content":`+string(content))
		}
	}
	for name, part := range map[string]string{
		"mentions": `{"id":"6","username":"b"}`, "embeds": `{"title":"a","fields":[{"name":"x","value":"y"}]}`, "attachments": `{"id":"1","filename":"x"}`,
		"components": `{"type":10,"content":"x"}`, "message_snapshots": `{"message":{"content":"x","embeds":[{"title":"a"}]}}`,
	} {
		grows[name] = func(n int) []byte {
			return fmt.Appendf(nil, with, `"content":"","`+name+`":[`+strings.Join(slices.Repeat([]string{part}, n), ",")+`]`)
		}
	}
	adaptertest.Work(t, grows, func(body []byte) error {
		envelope := event.Envelope{Workspace: "acme", Platform: event.Discord, Body: body}
		keysOf(envelope, known)
		_, err := payload.Normalizer{}.Normalize(t.Context(), envelope, known)
		return err
	})
}
