package payload_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/adapters/adaptertest"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// TestTheWorkOfAMessageIsLinear reads messages of many parts of each kind.
func TestTheWorkOfAMessageIsLinear(t *testing.T) {
	const with = `{"type":"message","channel":"C1","user":"U1","ts":"1750000000.000001",%s}`
	grows := map[string]func(n int) []byte{}
	for _, piece := range []string{"<@U1>", "<@", "<http://a|b>", "<a|", "&lt;", "&", "`", "```\n", "<!date^1|", "<!subteam^S1|a>", "<!here>", ":a:"} {
		text := func(n int) string {
			text, _ := json.Marshal(strings.Repeat(piece, n))
			return string(text)
		}
		grows["the text "+piece] = func(n int) []byte { return fmt.Appendf(nil, with, `"text":`+text(n)) }
		grows["the block "+piece] = func(n int) []byte {
			return fmt.Appendf(nil, with, `"text":"","blocks":[{"type":"section","text":{"type":"mrkdwn","text":`+text(n)+`}}]`)
		}
		grows["the attachment "+piece] = func(n int) []byte {
			return fmt.Appendf(nil, with, `"text":"","attachments":[{"text":`+text(n)+`,"fallback":"x"}]`)
		}
	}
	for name, part := range map[string]string{
		"blocks": `{"type":"section","text":{"type":"mrkdwn","text":"a"}}`, "attachments": `{"title":"a","text":"b","is_share":true,"ts":"1.2","channel_id":"C1"}`, "files": `{"id":"F1","name":"a"}`,
	} {
		grows[name] = func(n int) []byte {
			return fmt.Appendf(nil, with, `"text":"","`+name+`":[`+strings.Join(slices.Repeat([]string{part}, n), ",")+`]`)
		}
	}
	adaptertest.Work(t, grows, func(body []byte) error {
		envelope := event.Envelope{Workspace: "acme", Platform: event.Slack, Body: body}
		payload.Normalizer{}.Keys(envelope, fakeDirectory{self: us})
		_, err := payload.Normalizer{}.Normalize(t.Context(), envelope, fakeDirectory{self: us})
		return err
	})
}
