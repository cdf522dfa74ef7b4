package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/ingest/event"
)

const whole = `"source":"slack","sender_id":"slack:U1","sender_display_name":"Olivia","sender_type":"human"`

func TestTheFourFieldsAreEnough(t *testing.T) {
	m, err := event.ParseMetadata([]byte("{" + whole + "}"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Source != "slack" || m.SenderID != "slack:U1" || m.SenderDisplayName != "Olivia" || m.SenderType != event.Human {
		t.Errorf("read %+v", m)
	}
	if m.Passive != nil || m.IsFromMe != nil || m.MentionToken != "" {
		t.Errorf("a missing key is set: %+v", m)
	}
}

// TestABlankNameIsAName holds because assembly shows the sender_id instead.
func TestABlankNameIsAName(t *testing.T) {
	if _, err := event.ParseMetadata([]byte(`{"source":"web","sender_id":"web:a","sender_display_name":"   ","sender_type":"human"}`)); err != nil {
		t.Error(err)
	}
}

// TestFaults checks the words of every kind of fault, and that all faults are reported at
// once.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want []string
	}{
		"an empty object": {`{}`, []string{
			"metadata.source: is required and must not be empty",
			"metadata.sender_id: is required and must not be empty",
			"metadata.sender_display_name: is required and must not be empty",
			"metadata.sender_type: is required and must not be empty",
		}},
		"null is unset": {`{"source":null,"sender_id":"a:b","sender_display_name":"","sender_type":"bot"}`, []string{
			"metadata.source: is required and must not be empty",
			"metadata.sender_display_name: is required and must not be empty",
		}},
		"keys match exactly, and a typo is named": {`{"Source":"slack","senderId":"a:b","sender_displayname":"Alice","sender_type":"human"}`, []string{
			`metadata.source: is required and must not be empty (the unknown key "Source" looks like it)`,
			`metadata.sender_id: is required and must not be empty (the unknown key "senderId" looks like it)`,
			`metadata.sender_display_name: is required and must not be empty (the unknown key "sender_displayname" looks like it)`,
		}},
		"wrong types": {`{"source":1,"sender_id":"a:b","sender_display_name":["x"],"sender_type":"human","passive":"yes","mention_token":false,"trigger_rag":0}`, []string{
			"metadata.source: must be a string",
			"metadata.sender_display_name: must be a string",
			"metadata.passive: must be true, false or null",
			"metadata.mention_token: must be a string",
			"metadata.trigger_rag: must be true, false or null",
		}},
		"wrong values": {`{"source":"slack","sender_id":"U1","sender_display_name":"x","sender_type":"pipeline"}`, []string{
			`metadata.sender_type: is "pipeline", must be human or bot`,
			`metadata.sender_id: is "U1", must be <namespace>:<external id>`,
		}},
		"an empty external id": {`{"source":"slack","sender_id":"slack:","sender_display_name":"x","sender_type":"bot"}`, []string{
			`metadata.sender_id: is "slack:", must be <namespace>:<external id>`,
		}},
		"a key twice": {`{` + whole + `,"x":1,"x":1}`, []string{"metadata.x: is given twice"}},
		"a deep value": {`{` + whole + `,"x":` + strings.Repeat("[", 101) + `"]"` + strings.Repeat("]", 101) + `,"y":{"a":1}}`, []string{
			"metadata.x: must not be nested more than 100 deep",
		}},
		"no object": {`[]`, []string{"metadata: must be a JSON object"}},
		"no JSON":   {`{"source"`, []string{"metadata: must be a JSON object: unexpected end of JSON input"}},
		"a long value": {`{"source":"s","sender_id":"a:b","sender_display_name":"x","sender_type":"` + strings.Repeat("é", 300) + `"}`, []string{
			`metadata.sender_type: is "` + strings.Repeat("é", 40) + `…", must be human or bot`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := event.ParseMetadata([]byte(c.raw))
			if err == nil {
				t.Fatal("the metadata was accepted")
			}
			got := strings.Split(err.Error(), "; ")
			if missing := cmp.Diff(sorted(c.want), sorted(got)); missing != "" {
				t.Error(missing)
			}
		})
	}
}

// TestDeepMetadata takes values that are nested as deep as they may be.
func TestDeepMetadata(t *testing.T) {
	m, err := event.ParseMetadata([]byte(`{` + whole + `,"x":` + strings.Repeat("[", 99) + `{"[[":"[\"["},{}` + strings.Repeat("]", 99) + `,"y":[]}`))
	if err != nil || len(m.Extra) != 2 {
		t.Errorf("%+v, %v", m.Extra, err)
	}
}

func sorted(words []string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words {
		set[w] = true
	}
	return set
}

// TestOptionalKeys reads each of the known optional keys in its type.
func TestOptionalKeys(t *testing.T) {
	m, err := event.ParseMetadata([]byte(`{` + whole + `,"channel_external_id":"C1","mention_token":"<@U1>","thread_context":"x\ny",
		"is_from_me":false,"passive":true,"trigger_rag":null,"recipient_id":"bot:b","include_in_memory":true,"message_guid":"G"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := event.Metadata{
		ChannelExternalID: "C1", MentionToken: "<@U1>", ThreadContext: "x\ny", IsFromMe: new(false), Passive: new(true),
		RecipientID: "bot:b", IncludeInMemory: new(true), MessageGUID: "G",
	}
	if m.ChannelExternalID != want.ChannelExternalID || m.MentionToken != want.MentionToken || m.ThreadContext != want.ThreadContext ||
		m.RecipientID != want.RecipientID || m.MessageGUID != want.MessageGUID {
		t.Errorf("texts: %+v", m)
	}
	if *m.IsFromMe || !*m.Passive || m.TriggerRAG != nil || !*m.IncludeInMemory {
		t.Errorf("flags: %+v", m)
	}
}

// TestBytesSurvive proves that white space, the order of keys, numbers beyond any float
// and escapes do not change.
func TestBytesSurvive(t *testing.T) {
	raw := []byte("{ \"big\": 12345678901234567890.50e+3,\n" + whole + ",\"html\":\"<b>&\\u003c\",\"nested\": {\"b\" : 1 , \"a\":[ ]},\"passive\": null }")
	m, err := event.ParseMetadata(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), string(m.Bytes())); diff != "" {
		t.Error(diff)
	}
	m.Passive = new(true)
	m.Edited()
	want := `{"source":"slack","sender_id":"slack:U1","sender_display_name":"Olivia","sender_type":"human","passive":true,` +
		`"big":12345678901234567890.50e+3,"html":"<b>&\u003c","nested":{"b" : 1 , "a":[ ]}}`
	if diff := cmp.Diff(want, string(m.Bytes())); diff != "" {
		t.Errorf("written after Edited: %s", diff)
	}
}

// TestRoundTrip reads back written metadata, for arbitrary names.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.String(), event.Text)
		m := event.Metadata{
			Source: "s" + text.Draw(t, "source"), SenderID: "n:" + text.Draw(t, "id") + "x", SenderDisplayName: "x" + text.Draw(t, "name"),
			SenderType: event.Bot, ThreadContext: text.Draw(t, "context"), Passive: new(rapid.Bool().Draw(t, "passive")),
		}
		if key := text.Draw(t, "key"); rapid.Bool().Draw(t, "extra") {
			value, err := json.Marshal(text.Draw(t, "value"))
			if err != nil {
				t.Fatal(err)
			}
			m.Extra = []event.Extra{{Key: "x-" + key, Value: value}}
		}
		again, err := event.ParseMetadata(m.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Bytes(), m.Bytes()) || again.SenderDisplayName != m.SenderDisplayName || *again.Passive != *m.Passive {
			t.Fatalf("%s became %s", m.Bytes(), again.Bytes())
		}
	})
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü 👩‍👩‍👧":  "plain ü 👩‍👩‍👧",
		"a\xffb":         "a\uFFFDb",
		"a\x00b":         "a\uFFFDb",
		" \t\r\n\u2028 ": " \t\r\n\u2028 ",
		"":               "",
	} {
		if got := event.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestATypoIsNamed covers up to two edits besides case and separators.
func TestATypoIsNamed(t *testing.T) {
	for key, named := range map[string]bool{
		"Sender-ID": true, "senderid": true, "sendr_id": true, "sender_idx": true, "sender_di": true, "send_id": true, "ender_i": true,
		"sen_id": false, "my_sender_id": true, "our_sender_id": false, "id": false, strings.Repeat("sender_id", 1000): false,
	} {
		_, err := event.ParseMetadata([]byte(`{"source":"s","sender_display_name":"x","sender_type":"bot","` + key + `":"a:b"}`))
		if err == nil || strings.Contains(err.Error(), "looks like it") != named {
			t.Errorf("%.20s: %v", key, err)
		}
	}
}

// TestReportedFaultsAreBounded reports more and longer faults than anybody reads.
func TestReportedFaultsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	for name, c := range map[string]struct {
		fault    event.FieldError
		reported int
	}{
		"many": {event.FieldError{Field: "text", Message: "must be a string"}, event.MaxFaults},
		"long": {event.FieldError{Field: long, Message: long}, 5},
	} {
		faults := make(event.FieldErrors, 340_000)
		for i := range faults {
			faults[i] = c.fault
		}
		text := faults.Error()
		if n := len(faults.Capped()); n != c.reported || len(text) > 4<<10 || strings.Count(text, "; ") != n-1 || !utf8.ValidString(text) {
			t.Errorf("%s: %d faults in %d bytes", name, n, len(text))
		}
	}
	if result := event.Refuse(errors.New(long)); len(result.Error) > 4<<10+len("…") {
		t.Errorf("another error has %d bytes", len(result.Error))
	}
}

// TestAPlaceInATraceIsNoHidingPlace checks that the words of people are removed from a key that a caller may write, and that a place in a
// trace stays.
func TestAPlaceInATraceIsNoHidingPlace(t *testing.T) {
	const place = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for value, stays := range map[string]bool{place: true, "my number is 5551234": false, place + "-words": false, "": false} {
		for name, drop := range map[string]func(*event.Metadata) bool{
			"words": (*event.Metadata).DropWords, "texts": func(m *event.Metadata) bool { return m.DropTexts(func(text []byte) bool { return len(text) > 0 }) },
		} {
			m, err := event.ParseMetadata([]byte(`{"source":"s","sender_id":"web:1","sender_display_name":"x","sender_type":"bot","traceparent":"` + value + `"}`))
			if err != nil {
				t.Fatal(err)
			}
			if dropped := drop(&m); dropped == stays || len(m.Extra) > 0 != stays {
				t.Errorf("%s of %q: %v %v", name, value, dropped, m.Extra)
			}
		}
	}
}
