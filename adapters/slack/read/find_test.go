package read_test

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

// TestFindTrustsOurOwnMessagesOnly: any app can write such metadata.
func TestFindTrustsOurOwnMessagesOnly(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	server.Put(slacktest.Post{Channel: testapp.Room, User: "U0EVIL", BotID: "B0EVIL", Text: "x", Metadata: testapp.Metadata("k1")})
	server.Put(slacktest.Post{Channel: testapp.Room, User: "U0EVIL", Text: "x", Metadata: testapp.Metadata("k1")})
	server.Put(slacktest.Post{Channel: testapp.Room, User: slacktest.BotUser, BotID: slacktest.BotID, Text: "x",
		Metadata: json.RawMessage(`{"event_type":"other","event_payload":{"key":"k1"}}`)})
	if id, found, err := adapter.Find(t.Context(), testapp.Post("k1")); found || err != nil {
		t.Errorf("found %q, %v", id, err)
	}
}

// TestFindSkipsUnreadableMessages checks that a malformed message of another author
// does not hide ours.
func TestFindSkipsUnreadableMessages(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	server.Script("conversations.history", slacktest.Fault{Body: `{"ok":true,"messages":[{"ts":5,"blocks":{}},` +
		`{"ts":"1.2","user":"U0BOT","metadata":{"event_type":"x","event_payload":{"key":7}}},` +
		`{"ts":"1.1","user":"U0BOT","display_as_bot":"no","metadata":` + string(testapp.Metadata("k1")) + `}],"has_more":false}`})
	if id, found, err := adapter.Find(t.Context(), testapp.Post("k1")); id != testapp.Room+"/1.1" || !found || err != nil {
		t.Errorf("id %q, found %v, %v", id, found, err)
	}
}

func TestFindReadsEveryPageSinceThePost(t *testing.T) {
	now := testapp.Noon
	var queries []url.Values
	server, adapter := testapp.Start(t, slacktest.Options{
		Now: func() time.Time { return now },
		OnCall: func(c slacktest.Call) {
			if c.Method == "conversations.history" {
				queries = append(queries, c.Form)
			}
		},
	})
	for range 50 { // before the post; Find must not read them
		server.Put(slacktest.Post{Channel: testapp.Room, User: "U1", Text: "old"})
	}
	now = testapp.Noon.Add(time.Hour)
	id, err := adapter.Send(t.Context(), testapp.Post("k1"))
	if err != nil {
		t.Fatal(err)
	}
	for range 450 {
		server.Put(slacktest.Post{Channel: testapp.Room, User: "U1", Text: "new"})
	}
	wanted := testapp.Post("k1")
	wanted.NotBefore = now
	if got, found, err := adapter.Find(t.Context(), wanted); got != id || !found || err != nil {
		t.Errorf("id %q, found %v, %v; want %q", got, found, err, id)
	}
	if len(queries) != 3 || queries[0].Get("oldest") != "1700003480.000000" || queries[2].Get("oldest") != "1700003480.000000" {
		t.Errorf("queries: %v", queries)
	}
}

// TestFindWithAFastClock lets our clock be nearly two minutes ahead of Slack's.
func TestFindWithAFastClock(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	wanted := testapp.Post("k1")
	wanted.NotBefore = testapp.Noon.Add(119 * time.Second)
	id, err := adapter.Send(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if got, found, err := adapter.Find(t.Context(), wanted); got != id || !found || err != nil {
		t.Errorf("id %q, found %v, %v; want %q", got, found, err, id)
	}
	stream := server.Put(slacktest.Post{Channel: testapp.Room, User: slacktest.BotUser, BotID: slacktest.BotID, Text: "x"})
	if got, err := adapter.FindStream(t.Context(), wanted); len(got) != 1 || got[0] != testapp.Room+"/"+stream.TS || err != nil {
		t.Errorf("%v, %v; want %s", got, err, stream.TS)
	}
}

// TestFindReadsTheChannelIfTheRootIsDeleted: Slack posts the reply in the channel then.
func TestFindReadsTheChannelIfTheRootIsDeleted(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	sent := server.Put(slacktest.Post{Channel: testapp.Room, User: slacktest.BotUser, Text: "hello", Metadata: testapp.Metadata("k1")})
	wanted := testapp.Post("k1")
	wanted.To = adapters.Address{Channel: testapp.Room, Place: "1600000000.000001"}
	if id, found, err := adapter.Find(t.Context(), wanted); id != testapp.Room+"/"+sent.TS || !found || err != nil {
		t.Errorf("id %q, found %v, %v", id, found, err)
	}
}

func TestFindErrors(t *testing.T) {
	for name, fault := range map[string]slacktest.Fault{
		"429":                    slacktest.RateLimited(time.Second),
		"500":                    {Status: 500},
		"cut":                    {Cut: true},
		"refusal":                {Error: "channel_not_found"},
		"refusal without a code": {Body: `{"ok":false}`},
		"no JSON":                {Body: "<html>"},
		"more without a cursor":  {Body: `{"ok":true,"messages":[],"has_more":true}`},
		"a repeated cursor":      {Body: `{"ok":true,"messages":[],"has_more":true,"response_metadata":{"next_cursor":"next:1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			server, adapter := testapp.Start(t, slacktest.Options{})
			server.Script("conversations.history", fault, fault)
			if _, found, err := adapter.Find(t.Context(), testapp.Post("k1")); found || err == nil {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
	t.Run("refused for good", func(t *testing.T) {
		server, adapter := testapp.Start(t, slacktest.Options{})
		server.Script("conversations.history", slacktest.Fault{Error: "missing_scope"})
		if _, _, err := adapter.Find(t.Context(), testapp.Post("k1")); testapp.Failure(t, err).Failure != adapters.Permanent {
			t.Error(err)
		}
	})
	t.Run("auth.test", func(t *testing.T) {
		server, adapter := testapp.Start(t, slacktest.Options{})
		server.Script("auth.test", slacktest.Fault{Status: 503})
		if _, found, err := adapter.Find(t.Context(), testapp.Post("k1")); found || err == nil {
			t.Errorf("found %v, %v", found, err)
		}
	})
}
