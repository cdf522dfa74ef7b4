package payload_test

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// FuzzFrame checks for any body that Keys and Normalize do not panic, that Keys always
// returns the same keys, and that Keys refuses exactly the bodies that Normalize refuses.
func FuzzFrame(f *testing.F) {
	for _, path := range recordings(f) {
		for _, r := range readRecording(f, path) {
			f.Add([]byte(r.envelope.Body))
		}
	}
	f.Add([]byte(`{"op":0,"t":"MESSAGE_CREATE","d":{"id":"18446744073709551615","channel_id":"1","author":{"id":"1"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		envelope := event.Envelope{Workspace: "acme", Platform: event.Discord, Body: body}
		k := keysOf(envelope, known)
		if diff := cmp.Diff(k, keysOf(envelope, known)); diff != "" {
			t.Fatalf("a second call returns other keys: %s", diff)
		}
		if k.Dedupe == "" || len(k.Dedupe) > 256 || !utf8.ValidString(k.Dedupe) {
			t.Fatalf("the key is %q", k.Dedupe)
		}
		if (k.Thread == "") != (k.MessageID == "") || k.Result == nil && k.Thread == "" {
			t.Fatalf("the keys lack a thread: %+v", k)
		}
		e, err := payload.Normalizer{}.Normalize(t.Context(), envelope, known)
		dead := k.Result != nil && k.Result.Disposition == event.Dead
		if dead != (err != nil) {
			t.Fatalf("Keys returns the result %+v, Normalize the error %v", k.Result, err)
		}
		if err != nil {
			return
		}
		if e.Kind != k.Kind {
			t.Fatalf("Keys returns kind %s, Normalize kind %s", k.Kind, e.Kind)
		}
		checkMessage(t, k, e)
	})
}

func checkMessage(t *testing.T, k event.Keys, e event.Event) {
	m := e.Message
	if m == nil {
		return
	}
	if m.Thread != k.Thread || m.ExternalID != k.MessageID || m.Channel != k.Channel {
		t.Fatalf("the message %+v does not match the keys %+v", m, k)
	}
	if !utf8.ValidString(m.Content) {
		t.Fatalf("the content is %q", m.Content)
	}
	if err := m.Metadata.Validate(); err != nil && e.Kind == event.KindMessage {
		t.Fatal(err)
	}
}
