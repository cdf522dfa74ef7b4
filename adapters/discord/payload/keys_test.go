package payload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

func TestKeysOfMessage(t *testing.T) {
	want := event.Keys{
		Kind:      event.KindMessage,
		Dedupe:    "message:" + sentID,
		Thread:    "discord:acme:10",
		Channel:   event.Channel{ID: room, Type: event.ChannelRoom},
		MessageID: sentID,
	}
	if diff := cmp.Diff(want, keys(t, known, "MESSAGE_CREATE", posted("hello"))); diff != "" {
		t.Error(diff)
	}
}

func TestChannelTypes(t *testing.T) {
	tests := map[string]struct {
		data fields
		want event.ChannelType
	}{
		"guild":                   {posted(""), event.ChannelRoom},
		"direct":                  {posted("").with(fields{"guild_id": nil}), event.ChannelDirect},
		"direct, by type":         {posted("").with(fields{"guild_id": nil, "channel_type": 1}), event.ChannelDirect},
		"group":                   {posted("").with(fields{"guild_id": nil, "channel_type": 3}), event.ChannelGroup},
		"thread":                  {posted("").with(fields{"channel_type": 11}), event.ChannelRoom},
		"thread, no guild_id":     {posted("").with(fields{"guild_id": nil, "channel_type": 12}), event.ChannelRoom},
		"update without a sender": {edited("x").with(fields{"guild_id": nil, "author": nil}), event.ChannelUnknown},
	}
	for name, test := range tests {
		kind := "MESSAGE_CREATE"
		if strings.HasPrefix(name, "update") {
			kind = "MESSAGE_UPDATE"
		}
		if got := keys(t, known, kind, test.data).Channel.Type; got != test.want {
			t.Errorf("%s: the channel is %q, want %q", name, got, test.want)
		}
	}
}

func TestKeysOfEdit(t *testing.T) {
	want := event.Keys{
		Kind:      event.KindEdit,
		Dedupe:    "edit:" + sentID + ":" + revised,
		Thread:    "discord:acme:10",
		Channel:   event.Channel{ID: room, Type: event.ChannelRoom},
		MessageID: sentID,
	}
	if diff := cmp.Diff(want, keys(t, known, "MESSAGE_UPDATE", edited("better"))); diff != "" {
		t.Error(diff)
	}
}

func TestUpdateThatIsNoEdit(t *testing.T) {
	updates := map[string]fields{
		"preview of the original": posted("see https://example.org").with(fields{"embeds": []fields{{"type": "link"}}}),
		"preview alone":           {"id": sentID, "channel_id": room, "embeds": []fields{{"type": "link"}}},
		"pin":                     posted("x").with(fields{"pinned": true}),
		"flags of an edited one":  {"id": sentID, "channel_id": room, "flags": 4, "edited_timestamp": revised},
		"thread opened on it":     posted("x").with(fields{"flags": 32, "thread": fields{"id": sentID}}),
	}
	dedupe := map[string]string{}
	for name, data := range updates {
		k := keys(t, known, "MESSAGE_UPDATE", data)
		if diff := cmp.Diff(event.Ignore(event.ReasonNoChange), k.Result); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if other, taken := dedupe[k.Dedupe]; taken || !strings.HasPrefix(k.Dedupe, "body:") {
			t.Errorf("%s: the key %q is not a hash of the body, or belongs to %q too", name, k.Dedupe, other)
		}
		dedupe[k.Dedupe] = name
	}
}

func TestKeysOfDelete(t *testing.T) {
	one := keys(t, known, "MESSAGE_DELETE", fields{"id": sentID, "channel_id": room, "guild_id": guild})
	want := event.Keys{
		Kind:      event.KindDelete,
		Dedupe:    "delete:" + sentID,
		Thread:    "discord:acme:10",
		Channel:   event.Channel{ID: room, Type: event.ChannelRoom},
		MessageID: sentID,
	}
	if diff := cmp.Diff(want, one); diff != "" {
		t.Error(diff)
	}

	bulk := func(ids ...string) event.Keys {
		return keys(t, known, "MESSAGE_DELETE_BULK", fields{"ids": ids, "channel_id": room, "guild_id": guild})
	}
	several := bulk("31", "32", "33")
	if several.MessageID != "31" || several.Thread != want.Thread || several.Kind != event.KindDelete {
		t.Errorf("the bulk delete has the keys %+v", several)
	}
	if again := bulk("33", "31", "32"); again.Dedupe != several.Dedupe {
		t.Error("the order of the ids changes the key of a bulk delete")
	}
	if other := bulk("31", "32"); other.Dedupe == several.Dedupe {
		t.Error("two different bulk deletes have the same key")
	}
}

func TestKeysOfReaction(t *testing.T) {
	reaction := fields{"user_id": sam, "channel_id": room, "message_id": sentID, "guild_id": guild, "emoji": fields{"id": nil, "name": "👍"}}
	dedupe := func(more fields) string {
		k := keysOf(envelope(t, frame("MESSAGE_REACTION_ADD", reaction).with(more)), known)
		if k.Kind != event.KindReaction || k.MessageID != sentID || k.Thread != "discord:acme:10" || k.Result != nil {
			t.Errorf("the reaction has the keys %+v", k)
		}
		return k.Dedupe
	}
	if got, want := dedupe(fields{"session_id": "abc", "s": 7}), "reaction:abc:7"; got != want {
		t.Errorf("with session and sequence the key is %q, want %q", got, want)
	}
	for name, more := range map[string]fields{"session": {}, "sequence": {"session_id": "abc", "s": nil}} {
		if got := dedupe(more); !strings.HasPrefix(got, "body:") {
			t.Errorf("without a %s the key is %q, want a hash of the body", name, got)
		}
	}
	if dedupe(fields{"s": 7}) == dedupe(fields{"s": 8}) {
		t.Error("two reactions with the same fields have the same key")
	}
}

func TestIgnoredFrames(t *testing.T) {
	ignored := func(kind event.Kind, reason string) event.Keys {
		return event.Keys{Kind: kind, Result: event.Ignore(reason)}
	}
	message := func(kind int) fields { return frame("MESSAGE_CREATE", posted("").with(fields{"type": kind})) }
	tests := map[string]struct {
		frame fields
		want  event.Keys
	}{
		"hello":            {fields{"op": 10, "t": nil, "s": nil, "d": fields{}}, ignored(event.KindOther, event.ReasonNotAnEvent)},
		"other opcode":     {frame("MESSAGE_CREATE", posted("x")).with(fields{"op": 1}), ignored(event.KindOther, event.ReasonNotAnEvent)},
		"no frame":         {posted("a message of the REST API"), ignored(event.KindOther, event.ReasonNotAnEvent)},
		"no name":          {fields{"op": 0, "d": posted("x")}, ignored(event.KindOther, event.ReasonNotAnEvent)},
		"unknown":          {frame("TYPING_START", fields{"user_id": 5}), ignored(event.KindOther, event.ReasonNotAnEvent)},
		"ready":            {frame("READY", fields{"user": person(bot, "parley")}), ignored(event.KindOther, event.ReasonNotAnEvent)},
		"join":             {frame("GUILD_MEMBER_ADD", fields{}), ignored(event.KindMember, event.ReasonMember)},
		"leave":            {frame("GUILD_MEMBER_REMOVE", fields{}), ignored(event.KindMember, event.ReasonMember)},
		"new nickname":     {frame("GUILD_MEMBER_UPDATE", fields{}), ignored(event.KindMember, event.ReasonMember)},
		"button":           {frame("INTERACTION_CREATE", fields{}), ignored(event.KindOther, event.ReasonInteraction)},
		"pin notice":       {message(6), ignored(event.KindMessage, event.ReasonSystemMessage)},
		"welcome":          {message(7), ignored(event.KindMessage, event.ReasonSystemMessage)},
		"boost":            {message(8), ignored(event.KindMessage, event.ReasonSystemMessage)},
		"thread created":   {message(18), ignored(event.KindMessage, event.ReasonSystemMessage)},
		"thread's starter": {message(21), ignored(event.KindMessage, event.ReasonSystemMessage)},
		"message":          {message(0), event.Keys{Kind: event.KindMessage}},
		"reply":            {message(19), event.Keys{Kind: event.KindMessage}},
		"command response": {message(20), event.Keys{Kind: event.KindMessage}},
		"menu response":    {message(23), event.Keys{Kind: event.KindMessage}},
	}
	for name, test := range tests {
		got := keysOf(envelope(t, test.frame), known)
		if diff := cmp.Diff(test.want, event.Keys{Kind: got.Kind, Result: got.Result}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.Dedupe == "" {
			t.Errorf("%s: the dedupe key is empty", name)
		}
		if test.want.Result == nil {
			continue
		}
		e, err := payload.Normalizer{}.Normalize(t.Context(), envelope(t, test.frame), known)
		if err != nil || e.Ignored != test.want.Result.Reason {
			t.Errorf("%s: the event is %+v, %v, want %s", name, e, err, test.want.Result.Reason)
		}
	}
}

// TestDeferredResponse checks a bot that defers its response to a command. Discord first
// sends the message without text, and then an update with the text but without an
// edited_timestamp.
func TestDeferredResponse(t *testing.T) {
	deferred := posted("").with(fields{"type": 20, "flags": 128, "author": person("300", "deploys").with(fields{"bot": true})})
	response := deferred.with(fields{"flags": 0, "content": "build 513 is red"})

	k := keys(t, known, "MESSAGE_CREATE", deferred)
	if diff := cmp.Diff(event.Ignore(event.ReasonSystemMessage), k.Result); diff != "" || k.Dedupe == "message:"+sentID {
		t.Errorf("the empty message has the keys %+v", k)
	}
	k = keys(t, known, "MESSAGE_UPDATE", response)
	if k.Kind != event.KindMessage || k.Result != nil || k.Dedupe != "message:"+sentID {
		t.Errorf("the response has the keys %+v, want those of a message", k)
	}
	e := normalize(t, known, "MESSAGE_UPDATE", response)
	if e.Kind != event.KindMessage || len(e.Targets) > 0 || e.Message.Content != "build 513 is red" {
		t.Errorf("the response is %+v", e)
	}
	if at := keys(t, known, "MESSAGE_CREATE", response).Dedupe; at != k.Dedupe {
		t.Errorf("an immediate response has the key %q, a deferred one %q", at, k.Dedupe)
	}
	if k = keys(t, known, "MESSAGE_UPDATE", response.with(fields{"edited_timestamp": revised})); k.Kind != event.KindEdit {
		t.Errorf("a later edit of the response has the keys %+v", k)
	}
}

func TestNeeds(t *testing.T) {
	direct := fields{"guild_id": nil}
	tests := map[string]struct {
		data fields
		want string
	}{
		"message in a guild":     {posted("hello"), ""},
		"direct message":         {posted("hello").with(direct), ""},
		"a mention":              {posted("<@900> hello"), payload.NeedsUser},
		"direct, with mention":   {posted("<@900> hello").with(direct), payload.NeedsUser},
		"a mention, listed":      {posted("hello").with(fields{"mentions": []fields{person(sam, "sam")}}), payload.NeedsUser},
		"a reply":                {posted("yes").with(replying("31", nil)), payload.NeedsUser},
		"a bot's message":        {posted("hello").with(fields{"author": person("300", "x").with(fields{"bot": true})}), payload.NeedsUser},
		"a system message":       {posted("<@900>").with(fields{"type": 7}), ""},
		"an edit with a mention": {edited("<@900> hello"), payload.NeedsUser},
	}
	for name, test := range tests {
		kind := "MESSAGE_CREATE"
		if strings.HasPrefix(name, "an edit") {
			kind = "MESSAGE_UPDATE"
		}
		if got := keys(t, unknown, kind, test.data).Needs; got != test.want {
			t.Errorf("%s needs %q, want %q", name, got, test.want)
		}
		if got := keys(t, known, kind, test.data).Needs; got != "" {
			t.Errorf("%s needs %q, although our identity is known", name, got)
		}
	}
}

func TestSelfOf(t *testing.T) {
	ready := frame("READY", fields{"user": person(bot, "parley"), "application": fields{"id": "901", "flags": 0}})
	tests := map[string]struct {
		frame fields
		want  event.Self
		ok    bool
	}{
		"ready":          {ready, event.Self{UserID: bot, AppID: "901"}, true},
		"no application": {frame("READY", fields{"user": person(bot, "parley")}), event.Self{UserID: bot}, true},
		"no user":        {frame("READY", fields{"application": fields{"id": "901"}}), event.Self{}, false},
		"another event":  {frame("RESUMED", fields{"user": person(bot, "parley")}), event.Self{}, false},
		"another opcode": {ready.with(fields{"op": 2}), event.Self{}, false},
	}
	for name, test := range tests {
		self, ok := payload.SelfOf(envelope(t, test.frame))
		if ok != test.ok || ok && self != test.want {
			t.Errorf("%s: %+v, %t, want %+v, %t", name, self, ok, test.want, test.ok)
		}
	}
	if _, ok := payload.SelfOf(event.Envelope{Body: []byte("READY")}); ok {
		t.Error("SelfOf accepts a body that is not JSON")
	}
}

// TestIndentedFrame checks that white space between members changes nothing.
func TestIndentedFrame(t *testing.T) {
	body, err := json.MarshalIndent(frame("MESSAGE_CREATE", posted("hello")), "\t", "    ")
	if err != nil {
		t.Fatal(err)
	}
	got := keysOf(event.Envelope{Workspace: "acme", Body: body}, known)
	if diff := cmp.Diff(keys(t, known, "MESSAGE_CREATE", posted("hello")), got); diff != "" {
		t.Error(diff)
	}
}
