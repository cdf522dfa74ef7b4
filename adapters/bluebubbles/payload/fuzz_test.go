package payload_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

// FuzzRead checks for any body that Keys and Normalize agree, that the keys fit the store,
// and that the event keeps the contract.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"messages", "attachments", "edits", "unsent", "tapbacks", "written", "voice", "late-files", "polls", "groups", "notices", "faulty"} {
		envelopes, _ := recording(f, name)
		for _, e := range envelopes {
			f.Add(e.Body)
		}
	}
	f.Add([]byte(`[]`))
	f.Add([]byte(`{"type":"new-message","data":{"guid":"\u0000","text":"\ud800","chats":[null]}}`))

	f.Fuzz(func(t *testing.T, body []byte) {
		k := payload.Normalizer{}.Keys(envelope(body), contacts{})
		if k.Dedupe == "" || len(k.Dedupe) > 2048 || len(k.MessageID) > 2048 || !storable(k.Dedupe+k.MessageID+string(k.Thread)) {
			t.Fatalf("the store cannot hold the keys: %+v", k)
		}
		if k.Result == nil && k.MessageID == "" {
			t.Fatalf("keys with neither a result nor a message id: %+v", k)
		}
		e, err := payload.Normalizer{}.Normalize(t.Context(), envelope(body), contacts{})
		if dead := k.Result != nil && k.Result.Disposition == event.Dead; dead != (err != nil) {
			t.Fatalf("Keys returns the result %v, Normalize the error %v", k.Result, err)
		}
		if err != nil {
			return
		}
		if ignored := k.Result != nil; ignored != (e.Ignored != "") || e.Kind != k.Kind {
			t.Fatalf("keys %+v, event %+v", k, e)
		}
		if e.Message != nil {
			checkMessage(t, k, e.Message)
		}
		if e.Kind == event.KindReaction && (e.Reaction.Emoji == "" || e.Targets[0] != k.MessageID) {
			t.Fatalf("reaction %+v to %v", e.Reaction, e.Targets)
		}
	})
}

func checkMessage(t *testing.T, k event.Keys, m *event.Message) {
	if err := m.Metadata.Validate(); err != nil {
		t.Fatal(err)
	}
	if m.ExternalID != k.MessageID || m.Thread != k.Thread || m.Channel != k.Channel {
		t.Fatalf("keys %+v, message %+v", k, m)
	}
	if strings.Contains(m.Content, "\uFFFC") || !storable(m.Content) {
		t.Fatalf("content %q", m.Content)
	}
	if _, err := m.SentAt.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
}

func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
