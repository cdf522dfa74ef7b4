package payload_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/web/payload"
	"parley/ingest/event"
)

const (
	thread  = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	crmJSON = `{"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot","x":1e2}`
)

var noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

// TestBodyFaults checks that the error names all faulty members.
func TestBodyFaults(t *testing.T) {
	for body, want := range map[string][]string{
		`{"content":""}`: nil,
		`{"content":"x","thread_id":null,"client_message_id":null}`: nil,
		`{"content":"x","passive":null,"metadata":null}`:            nil,
		`{}`:               {"content"},
		`{"content":null}`: {"content"},
		`{"content":7,"passive":"yes","thread_id":"t1"}`:                         {"content", "passive", "thread_id"},
		`{"content":"x","thread_id":"urn:uuid:` + thread + `"}`:                  {"thread_id"},
		`{"content":"x","client_message_id":""}`:                                 {"client_message_id"},
		`{"content":"x","client_message_id":"` + strings.Repeat("i", 129) + `"}`: {"client_message_id"},
		`{"content":"x","Content":"y"}`:                                          {"Content"},
		`{"content":"x","content":"y"}`:                                          {"content"},
		`[]`:                                                                     {"body"},
		`{"content":"x"} {}`:                                                     {"body"},
		``:                                                                       {"body"},
	} {
		_, err := payload.ReadBody([]byte(body))
		var faults event.FieldErrors
		errors.As(err, &faults)
		var got []string
		for _, f := range faults {
			got = append(got, f.Field)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// TestBodyRoundTrip checks that Bytes and ReadBody preserve a body, and its metadata byte for
// byte.
func TestBodyRoundTrip(t *testing.T) {
	want := payload.Body{
		Content: "<b> \u2028 \"x\"\n", Metadata: []byte(`{ "a" : 1e2,"b":"\u00e9" }`), ThreadID: thread, ClientMessageID: "m1", Passive: true,
	}
	got, err := payload.ReadBody(want.Bytes())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// TestStamp checks that Stamp replaces invalid UTF-8, adds an id to a body without one, and changes
// nothing else.
func TestStamp(t *testing.T) {
	for _, body := range []string{`{"content":"x","client_message_id":"m1"}`, `{"content":"x","message_id":"m2"}`, `nonsense`} {
		if got := payload.Stamp([]byte(body)); string(got) != body {
			t.Errorf("%s became %s", body, got)
		}
	}
	invalid := []byte("{\"content\":\"x\",\"client_message_id\":\"1\",\"metadata\":{\"k\":\"\xff\"}}")
	if b, err := payload.ReadBody(payload.Stamp(invalid)); err != nil || string(b.Metadata) != "{\"k\":\"\uFFFD\"}" {
		t.Errorf("metadata with invalid UTF-8 becomes %q, %v", b.Metadata, err)
	}
	if b, err := payload.ReadBody(payload.Stamp([]byte(`{"content":"x"}`))); err != nil || b.MessageID == "" || b.Content != "x" {
		t.Errorf("%+v, %v", b, err)
	}
}

func envelope(body string) event.Envelope {
	return event.Envelope{Workspace: "ours", Platform: event.Web, ReceivedAt: noon, Body: []byte(body)}
}

func keys(body string) event.Keys { return payload.Normalizer{}.Keys(envelope(body), nil) }

// TestKeysOfClientID checks that two messages have the same key exactly if id, sender and
// thread are the same, so that no sender can forge another's key.
func TestKeysOfClientID(t *testing.T) {
	key := func(sender, thread, id string) string {
		return keys(`{"content":"x","thread_id":"` + thread + `","client_message_id":"` + id +
			`","metadata":{"source":"s","sender_display_name":"n","sender_type":"human","sender_id":"` + sender + `"}}`).Dedupe
	}
	other := strings.Replace(thread, "6", "7", 1)
	first := key("a:b", thread, "c")
	for name, dedupe := range map[string]string{
		"another sender": key("a:x", thread, "c"), "another thread": key("a:b", other, "c"), "another id": key("a:b", thread, "d"),
		"a sender with the id's colon": key("a:b:c", thread, "c"), "an id with the sender's": key("a:b", thread, "b:c"),
	} {
		if dedupe == first {
			t.Errorf("%s has the same key", name)
		}
	}
	if key("a:b", thread, "c") != first {
		t.Error("the same message has two keys")
	}
	if long := key("a:"+strings.Repeat("b", 100_000), thread, "c"); len(long) > 512 {
		t.Errorf("the key has %d bytes", len(long))
	}
}

// TestNormalize checks that a web thread is direct, and that an id comes from the client or
// from the handler.
func TestNormalize(t *testing.T) {
	body := `{"content":"hi","thread_id":"` + thread + `","message_id":"id-1","passive":true,"metadata":` + crmJSON + `}`
	k := keys(body)
	e, err := payload.Normalizer{}.Normalize(t.Context(), envelope(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := e.Message
	if k.Thread != event.ThreadKey("web:ours:"+thread) || m.Thread != k.Thread || k.MessageID != "id-1" || m.ExternalID != "id-1" || m.ClientMessageID != "" {
		t.Errorf("the keys are %+v and the message %+v", k, m)
	}
	if m.Addressed != event.AddressedDirect || m.Channel != (event.Channel{ID: thread, Type: event.ChannelDirect}) || !m.Passive || !m.SentAt.Equal(noon) {
		t.Errorf("the message is %+v", m)
	}
	if string(m.Metadata.Bytes()) != crmJSON {
		t.Errorf("the metadata is %s", m.Metadata.Bytes())
	}
	unstamped := `{"content":"hi","metadata":` + crmJSON + `}`
	if k := keys(unstamped); k.Result == nil || k.Result.Error != "thread_id: is required; message_id: is required if there is no client_message_id" {
		t.Errorf("the result of a body without ids is %+v", k.Result)
	}
}

// TestARecordedLinkIsNotRead checks that replay shows the file of a link and reads nothing.
func TestARecordedLinkIsNotRead(t *testing.T) {
	body := `{"content":"look","thread_id":"` + thread + `","message_id":"id-1","metadata":` + crmJSON + `,"attachments":[{"url":"http://127.0.0.1/storage/v1/object/sign/b/ab/abcd?token=x"}]}`
	e, err := payload.Normalizer{}.Normalize(t.Context(), envelope(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]event.Attachment{{ID: "abcd", Name: "abcd"}}, e.Message.Attachments); diff != "" {
		t.Error(diff)
	}
}

// TestPassiveBodyWins checks that a passive body never leaves passive: false in the stored
// metadata, and that it changes no other byte.
func TestPassiveBodyWins(t *testing.T) {
	const rest = `"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot"`
	for given, want := range map[string]string{
		`{` + rest + `,"passive":false,"x":1e2}`: `{` + rest + `,"passive":true,"x":1e2}`,
		`{` + rest + `,"passive": true }`:        `{` + rest + `,"passive": true }`,
		`{` + rest + `,"passive": null }`:        `{` + rest + `,"passive": null }`,
	} {
		body := `{"content":"hi","thread_id":"` + thread + `","message_id":"id-1","passive":true,"metadata":` + given + `}`
		e, err := payload.Normalizer{}.Normalize(t.Context(), envelope(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(e.Message.Metadata.Bytes()); got != want || !e.Message.Passive {
			t.Errorf("%s is stored as %s", given, got)
		}
	}
}
