package payload_test

import (
	"testing"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// BenchmarkKeysAndNormalize decodes one mention. Normalize either uses the body that
// Keys has decoded, or decodes it again.
func BenchmarkKeysAndNormalize(b *testing.B) {
	blocks := []object{{"type": "rich_text", "block_id": "x1", "elements": []object{{
		"type": "rich_text_section", "elements": []object{
			{"type": "user", "user_id": "UPARLEY01"}, {"type": "text", "text": " when does the bakery open tomorrow?"}},
	}}}}
	envelope := envelopeOf(b, eventCallback(messageEvent("<@UPARLEY01> when does the bakery open tomorrow?", object{
		"channel_type": "channel", "client_msg_id": "f1f9d0c0-0000-4000-8000-000000000001", "team": "TACME0001",
		"event_ts": "1750000000.000100", "blocks": blocks,
	})))
	directory := fakeDirectory{self: us, users: map[string]adapters.User{"UMARA0001": {DisplayName: "Mara"}}}
	normalizer := payload.Normalizer{}
	for name, reuse := range map[string]bool{"decoded once": true, "decoded twice": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read := envelope
				keys := normalizer.Keys(read, directory)
				if reuse {
					read.Parsed = keys.Parsed
				}
				if e, err := normalizer.Normalize(b.Context(), read, directory); err != nil || e.Kind != event.KindMessage {
					b.Fatal(e, err)
				}
			}
		})
	}
}
