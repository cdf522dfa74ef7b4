package payload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/adapters/slack/payload"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
)

// object is a JSON object under construction.
type object map[string]any

func envelopeOf(t testing.TB, body any) event.Envelope {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", Body: raw}
}

// Callback wraps an event in the callback for our installation.
func eventCallback(inner object) object {
	return object{
		"type": "event_callback", "team_id": "TACME0001", "api_app_id": "APARLEY01", "event_id": "Ev1", "event": inner,
		"authorizations": []object{{"team_id": "TACME0001", "enterprise_id": nil, "user_id": "UPARLEY01", "is_bot": true}},
	}
}

// messageEvent returns a message of Mara's in a channel, with the given fields added or
// replaced.
func messageEvent(text string, more object) object {
	message := object{"type": "message", "channel": "C1", "user": "UMARA0001", "text": text, "ts": "1750000000.000100"}
	for key, value := range more {
		message[key] = value
	}
	return message
}

var us = event.Self{TeamID: "TACME0001", UserID: "UPARLEY01", BotID: "BPARLEY01", AppID: "APARLEY01"}

func keysOf(t testing.TB, body any, facts fakeDirectory) event.Keys {
	t.Helper()
	return payload.Normalizer{}.Keys(envelopeOf(t, body), facts)
}

func TestMessageAndMentionNameEachOther(t *testing.T) {
	message := keysOf(t, eventCallback(messageEvent("<@UPARLEY01> hi", nil)), fakeDirectory{self: us})
	mention := keysOf(t, eventCallback(messageEvent("<@UPARLEY01> hi", object{"type": "app_mention"})), fakeDirectory{self: us})
	if message.AltKey != mention.Dedupe || mention.AltKey != message.Dedupe || message.Dedupe == mention.Dedupe {
		t.Errorf("the message has the keys %s and %s, the mention %s and %s", message.Dedupe, message.AltKey, mention.Dedupe, mention.AltKey)
	}
	if message.Thread != mention.Thread || message.MessageID != mention.MessageID {
		t.Errorf("the two keys differ: %+v, %+v", message, mention)
	}
	if plain := keysOf(t, eventCallback(messageEvent("hi", nil)), fakeDirectory{self: us}); plain.AltKey != "" {
		t.Errorf("a message without a mention has the second key %s", plain.AltKey)
	}
}

func TestRetriedFrameHasTheSameKey(t *testing.T) {
	for name, payload := range map[string]object{
		"a message":    eventCallback(messageEvent("hi", nil)),
		"a dead one":   eventCallback(messageEvent("hi", object{"ts": nil})),
		"an app event": eventCallback(object{"type": "app_home_opened"}),
		"a join":       eventCallback(object{"type": "member_joined_channel"}),
		"an unfurl":    eventCallback(object{"type": "message", "subtype": "message_changed", "channel": "C1", "message": messageEvent("hi", nil)}),
		"an action":    {"type": "block_actions"},
	} {
		kind := "events_api"
		if payload["event"] == nil {
			kind = "interactive"
		}
		first := keysOf(t, object{"envelope_id": "1", "type": kind, "payload": payload, "retry_attempt": 0}, fakeDirectory{self: us})
		again := keysOf(t, object{"envelope_id": "2", "type": kind, "payload": payload, "retry_attempt": 1}, fakeDirectory{self: us})
		if first.Dedupe != again.Dedupe {
			t.Errorf("%s: first %s, again %s", name, first.Dedupe, again.Dedupe)
		}
	}
}

func TestKeysNeedOurUser(t *testing.T) {
	alone := func(message object) object { return message } // an event without a callback names no identity
	for _, tt := range []struct {
		about string
		body  object
		facts event.Self
		want  string
	}{
		{"a mention may be ours", alone(messageEvent("<@U1> hi", nil)), event.Self{}, "user"},
		{"a broadcast reply may be to us", alone(messageEvent("hi", object{"thread_ts": "1.1", "root": object{"user": "U1"}})), event.Self{}, "user"},
		{"a reply may be to us", alone(messageEvent("hi", object{"thread_ts": "1.1", "parent_user_id": "U1"})), event.Self{}, "user"},
		{"a bot may be us", alone(messageEvent("hi", object{"bot_id": "B1"})), event.Self{}, "user"},
		{"a person's plain text needs nothing", alone(messageEvent("hi", nil)), event.Self{}, ""},
		{"an app_mention mentions us by itself", alone(messageEvent("<@U1> hi", object{"type": "app_mention"})), event.Self{}, ""},
		{"known from before", alone(messageEvent("<@U1> hi", nil)), us, ""},
		{"named by the callback", eventCallback(messageEvent("<@U1> hi", nil)), event.Self{}, ""},
		{"an edit may add a mention", object{"type": "message", "subtype": "message_changed", "channel": "C1",
			"message": messageEvent("<@U1>", object{"edited": object{"ts": "1.2"}})}, event.Self{}, "user"},
	} {
		if got := keysOf(t, tt.body, fakeDirectory{self: tt.facts}); got.Needs != tt.want || got.Result != nil {
			t.Errorf("%s: needs %q, want %q (settled %v)", tt.about, got.Needs, tt.want, got.Result)
		}
	}
}

func TestChannelType(t *testing.T) {
	remembered := fakeDirectory{self: us, types: map[string]event.ChannelType{"C1": event.ChannelGroup}}
	for named, want := range map[string]event.ChannelType{
		"im": event.ChannelDirect, "app_home": event.ChannelDirect, "mpim": event.ChannelGroup,
		"channel": event.ChannelRoom, "group": event.ChannelRoom, "": event.ChannelUnknown, "something new": event.ChannelUnknown,
	} {
		keys := keysOf(t, eventCallback(messageEvent("hi", object{"channel_type": named})), remembered)
		if keys.Channel.Type != want {
			t.Errorf("%q: type %q, want %q", named, keys.Channel.Type, want)
		}
		inRoom := strings.HasSuffix(string(keys.Thread), ":1750000000.000100")
		if inRoom != (want == event.ChannelRoom) {
			t.Errorf("%q, known as a group: thread %s", named, keys.Thread)
		}
	}
	if keys := keysOf(t, eventCallback(messageEvent("hi", object{"channel": "D1"})), fakeDirectory{self: us}); keys.Channel.Type != event.ChannelDirect {
		t.Errorf("the id of a direct message has the type %q", keys.Channel.Type)
	}
}

func TestForeignEvents(t *testing.T) {
	theirs := []object{{"team_id": "TTHIRD001", "user_id": "UELSE0001", "is_bot": true}}
	for _, tt := range []struct {
		about   string
		change  object
		self    event.Self
		foreign bool
	}{
		{"our team", object{"authorizations": theirs}, us, false},
		{"another team, our authorization", object{"team_id": "TTHIRD001"}, us, false},
		{"another team, another's authorization", object{"team_id": "TTHIRD001", "authorizations": theirs}, us, true},
		{"another team, and no authorization", object{"team_id": "TTHIRD001", "authorizations": nil}, us, true},
		{"an organisation's installation, known by our user", object{"team_id": "TTHIRD001", "authorizations": []object{
			{"enterprise_id": "E1", "user_id": "UPARLEY01", "is_bot": true, "is_enterprise_install": true}}}, us, false},
		{"an organisation's installation, known by its id", object{"team_id": "TTHIRD001", "authorizations": []object{
			{"enterprise_id": "E1", "is_enterprise_install": true}}}, event.Self{TeamID: "E1"}, false},
		{"one team's installation in an organisation", object{"team_id": "TTHIRD001", "authorizations": []object{
			{"enterprise_id": "E1", "team_id": "TTHIRD001", "is_enterprise_install": false}}}, event.Self{TeamID: "E1"}, true},
		{"another app", object{"api_app_id": "AOTHER001"}, us, true},
		{"our app is not known yet", object{"api_app_id": "AOTHER001"}, event.Self{TeamID: "TACME0001"}, false},
		{"our team is not known yet", object{"team_id": "TTHIRD001", "authorizations": theirs}, event.Self{UserID: "U1"}, false},
		{"no team is named", object{"team_id": nil, "authorizations": nil}, us, false},
	} {
		body := eventCallback(messageEvent("hi", nil))
		for key, value := range tt.change {
			body[key] = value
		}
		want := (*event.Result)(nil)
		if tt.foreign {
			want = event.Ignore(event.ReasonOtherWorkspace)
		}
		if diff := cmp.Diff(want, keysOf(t, body, fakeDirectory{self: tt.self}).Result); diff != "" {
			t.Errorf("%s: %s", tt.about, diff)
		}
	}
}

func TestAnErrorNamesEveryField(t *testing.T) {
	keys := keysOf(t, eventCallback(object{"type": "message", "text": 7, "files": "x", "ts": "soon"}), fakeDirectory{self: us})
	want := &event.Result{Disposition: event.Dead, Error: "event.channel: is missing; event.text: must be a string, not number; " +
		`event.ts: is "soon", must be a timestamp such as 1700000000.000100; event.user: is missing`}
	if diff := cmp.Diff(want, keys.Result); diff != "" {
		t.Error(diff)
	}
	body := eventCallback(messageEvent("hi", object{"user": 7}))
	body["team_id"], body["authorizations"] = 8, "none"
	keys = keysOf(t, object{"type": "events_api", "payload": body}, fakeDirectory{self: us})
	want = &event.Result{Disposition: event.Dead, Error: "payload.authorizations: must be an array, not string; " +
		"payload.team_id: must be a string, not number; payload.event.user: must be a string, not number"}
	if diff := cmp.Diff(want, keys.Result); diff != "" || keys.Kind != event.KindMessage {
		t.Errorf("a callback with faults around its event, of kind %s: %s", keys.Kind, diff)
	}
}

func TestDedupeKeyLimits(t *testing.T) {
	reaction := func(emoji string) string {
		return keysOf(t, object{"type": "reaction_added", "user": "U1", "reaction": emoji, "event_ts": "1.2",
			"item": object{"type": "message", "channel": "C1", "ts": "1.1"}}, fakeDirectory{self: us}).Dedupe
	}
	if key := reaction("a\x00b"); strings.ContainsRune(key, 0) {
		t.Errorf("%q holds a NUL", key)
	}
	long := strings.Repeat("x", 5000)
	if one, other := reaction(long+"1"), reaction(long+"2"); len(one) > 512 || one == other {
		t.Errorf("%d bytes, different: %t", len(one), one != other)
	}
}

func TestSelfOf(t *testing.T) {
	for _, tt := range []struct {
		about string
		body  any
		want  event.Self
	}{
		{"a callback", eventCallback(messageEvent("hi", nil)), event.Self{TeamID: "TACME0001", UserID: "UPARLEY01", AppID: "APARLEY01"}},
		{"in a frame", object{"envelope_id": "1", "type": "events_api", "payload": eventCallback(messageEvent("hi", nil))},
			event.Self{TeamID: "TACME0001", UserID: "UPARLEY01", AppID: "APARLEY01"}},
		{"a person's authorization", object{"type": "event_callback", "api_app_id": "A1", "event": messageEvent("hi", nil),
			"authorizations": []object{{"team_id": "T1", "user_id": "UMARA0001", "is_bot": false}}}, event.Self{AppID: "A1"}},
		{"an authorization without a type", object{"type": "event_callback", "event": messageEvent("hi", nil),
			"authorizations": []object{{"team_id": "T1", "user_id": "UPARLEY01"}}}, event.Self{TeamID: "T1", UserID: "UPARLEY01"}},
		{"an event alone", messageEvent("hi", nil), event.Self{}},
		{"no object", 7, event.Self{}},
	} {
		got, ok := payload.SelfOf(envelopeOf(t, tt.body))
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != event.Self{}) {
			t.Errorf("%s: %t %s", tt.about, ok, diff)
		}
	}
}
