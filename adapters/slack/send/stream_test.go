package send_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/payload"
	"parley/adapters/slack/slacktest"
)

func TestStream(t *testing.T) {
	var began url.Values
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "chat.startStream" {
			began = c.Form
		}
	}})
	reply := replyIn(server, "One")
	id, err := adapter.Begin(t.Context(), reply)
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{"token": {slacktest.Token}, "channel": {testapp.Room}, "thread_ts": {reply.To.Place}, "markdown_text": {"One"},
		"recipient_team_id": {slacktest.Team}, "recipient_user_id": {"U1"}}
	if diff := cmp.Diff(want, began); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{" **two**", "", " <@U1>"} {
		if err := adapter.Append(t.Context(), id, reply, text); err != nil {
			t.Error(err)
		}
	}
	if err := adapter.End(t.Context(), id, reply, "."); err != nil || shown(server, id) != "One **two** <@U1>." || len(server.OpenStreams()) != 0 {
		t.Errorf("%q, %v", shown(server, id), err)
	}
	if err := adapter.End(t.Context(), id, reply, ""); err != nil {
		t.Errorf("ended twice: %v", err)
	}
	if got := testapp.Failure(t, adapter.End(t.Context(), id, reply, "more")); got.Failure != adapters.Permanent {
		t.Errorf("text after the end: %v", got)
	}
}

// TestBeginRefusals begins a stream without a root, without an asker, with another
// configuration, and in a channel without streams. It also checks that only the
// channel's refusal is remembered.
func TestBeginRefusals(t *testing.T) {
	for name, change := range map[string]func(*slack.Config, *adapters.Post, *slacktest.Server){
		"no root":      func(_ *slack.Config, p *adapters.Post, _ *slacktest.Server) { p.To.Place = "" },
		"no asker":     func(_ *slack.Config, p *adapters.Post, _ *slacktest.Server) { p.Asker = "" },
		"preview edit": func(c *slack.Config, _ *adapters.Post, _ *slacktest.Server) { c.Preview = adapters.PreviewEdit },
		"this channel": func(_ *slack.Config, _ *adapters.Post, s *slacktest.Server) {
			s.Script("chat.startStream", slacktest.Fault{Error: "method_not_supported_for_channel_type"})
		},
	} {
		s := newFixture(t)
		c, reply := testapp.Config(s.server.URL()), s.post
		change(&c, &reply, s.server)
		adapter := slack.New("acme", c)
		if _, err := adapter.Begin(t.Context(), reply); testapp.Failure(t, err).Failure != adapters.Permanent {
			t.Errorf("%s: %v", name, err)
		}
		other := s.post
		if name == "this channel" {
			if _, err := adapter.Begin(t.Context(), s.post); err == nil {
				t.Error("the channel's refusal is not remembered")
			}
			other.To.Channel = "C0OTHER"
		}
		if _, err := adapter.Begin(t.Context(), other); name != "preview edit" && err != nil {
			t.Errorf("%s is remembered: %v", name, err)
		}
	}
	server, adapter := testapp.Start(t, slacktest.Options{})
	direct := testapp.Post("k1")
	direct.To = adapters.Address{Channel: "D0IM", Place: server.Put(slacktest.Post{Channel: "D0IM", User: "U1", Text: "hi"}).TS}
	if _, err := adapter.Begin(t.Context(), direct); err != nil {
		t.Errorf("a direct message without an asker: %v", err)
	}
}

// TestMissingStreamsAreRememberedForAnHour counts the calls of Begin and Edit in a
// workspace without streams.
func TestMissingStreamsAreRememberedForAnHour(t *testing.T) {
	for _, code := range []string{"unknown_method", "missing_scope", "not_allowed_token_type"} {
		asked := 0
		server, adapter := testapp.Start(t, slacktest.Options{NoStreams: code, OnCall: func(c slacktest.Call) {
			if c.Method == "chat.startStream" || c.Method == "chat.stopStream" {
				asked++
			}
		}})
		now := testapp.Noon
		adapter.Client.Now = func() time.Time { return now }
		reply := replyIn(server, "x")
		id, err := adapter.Send(t.Context(), reply)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct{ minutes, asked int }{{0, 1}, {59, 1}, {61, 2}} {
			now = testapp.Noon.Add(time.Duration(step.minutes) * time.Minute)
			if _, err := adapter.Begin(t.Context(), reply); testapp.Failure(t, err).Failure != adapters.Permanent || asked != step.asked {
				t.Errorf("%s, after %d minutes: %d calls, %v", code, step.minutes, asked, err)
			}
			if err := adapter.Edit(t.Context(), id, reply); err != nil || asked != step.asked {
				t.Errorf("%s: an edit calls a method of streams, %v", code, err)
			}
		}
	}
}

// TestClosedStreamCanBeEdited checks that Append reports Permanent, and that Edit then
// succeeds.
func TestClosedStreamCanBeEdited(t *testing.T) {
	now := testapp.Noon
	server, adapter := testapp.Start(t, slacktest.Options{Now: func() time.Time { return now }})
	reply := replyIn(server, "One")
	old, err := adapter.Begin(t.Context(), reply)
	if err != nil {
		t.Fatal(err)
	}
	stopped, err := adapter.Begin(t.Context(), reply)
	if err != nil {
		t.Fatal(err)
	}
	server.PressStop(testapp.Room, stopped[len(testapp.Room)+1:])
	if got := testapp.Failure(t, adapter.Append(t.Context(), stopped, reply, "two")); got.Failure != adapters.Permanent {
		t.Errorf("a reader stopped it: %v", got)
	}
	now = now.Add(5 * time.Minute)
	if got := testapp.Failure(t, adapter.Append(t.Context(), old, reply, "two")); got.Failure != adapters.Permanent {
		t.Errorf("it is too old: %v", got)
	}
	reply.Text = "One two"
	for _, id := range []string{old, stopped} {
		if err := adapter.Edit(t.Context(), id, reply); err != nil || shown(server, id) != "One two" {
			t.Errorf("%q, %v", shown(server, id), err)
		}
	}
}

// TestFindStreamReturnsMessagesWithoutAKey loses the answer of Begin.
func TestFindStreamReturnsMessagesWithoutAKey(t *testing.T) {
	s := newFixture(t)
	withFile := s.post
	withFile.Key, withFile.File = "k2", file("a.txt", "content")
	if _, err := s.adapter.Send(t.Context(), withFile); err != nil {
		t.Fatal(err)
	}
	s.server.Put(slacktest.Post{Channel: testapp.Room, ThreadTS: s.post.To.Place, User: "U1", Text: "another's"})
	s.server.Put(slacktest.Post{Channel: testapp.Room, ThreadTS: s.post.To.Place, User: slacktest.BotUser, Text: "old", TS: "1600000000.000100"})
	s.server.Script("chat.startStream", slacktest.Fault{Cut: true, Effect: true})
	if _, err := s.adapter.Begin(t.Context(), s.post); testapp.Failure(t, err).Failure != adapters.Unclear {
		t.Fatal(err)
	}
	streams := s.server.OpenStreams()
	ids, err := s.adapter.FindStream(t.Context(), s.post)
	if want := []string{s.stream, testapp.Room + "/" + streams[1].TS}; err != nil || !cmp.Equal(ids, want) {
		t.Errorf("%v, %v; want %v", ids, err, want)
	}
	s.server.Script("conversations.replies", slacktest.Fault{Status: 500})
	if ids, err := s.adapter.FindStream(t.Context(), s.post); err == nil {
		t.Errorf("found %v after a failed read", ids)
	}
}

// TestFindStreamSkipsTheRoot: every page contains the root, which is older.
func TestFindStreamSkipsTheRoot(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	root := server.Put(slacktest.Post{Channel: testapp.Room, User: slacktest.BotUser, BotID: slacktest.BotID, Text: "ours", TS: "1600000000.000100"})
	reply := testapp.Post("k1")
	reply.To.Place, reply.Asker = root.TS, "U1"
	id, err := adapter.Begin(t.Context(), reply)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := adapter.FindStream(t.Context(), reply); err != nil || !cmp.Equal(ids, []string{id}) {
		t.Errorf("%v, %v; want %s", ids, err, id)
	}
}

func TestTellShowsOneUser(t *testing.T) {
	s := newFixture(t)
	s.post.Text = "**Sorry**"
	if err := s.adapter.PostEphemeral(t.Context(), s.post); err != nil {
		t.Error(err)
	}
	got := s.server.Ephemerals()
	if len(got) != 1 || got[0].User != "U1" || got[0].ThreadTS != s.post.To.Place || got[0].Text != "**Sorry**" {
		t.Errorf("%+v", got)
	}
	s.post.Asker = ""
	if got := testapp.Failure(t, s.adapter.PostEphemeral(t.Context(), s.post)); got.Failure != adapters.Permanent {
		t.Error(got)
	}
}

// TestEphemeralAddress proves that an ephemeral message is in a thread only if the thread has a
// reply.
func TestEphemeralAddress(t *testing.T) {
	adapter, root := newFixture(t).adapter, "1600000000.000100"
	for answered, want := range map[string]string{
		testapp.Room + "/" + root: "", testapp.Room + "/shortcut-1-2": "", testapp.Room + "/1600000000.000200": root, testapp.Room + "/action-1-2": root,
	} {
		got := adapter.EphemeralAddress(adapters.Address{Channel: testapp.Room, Place: root}, answered)
		if got.Channel != testapp.Room || payload.ThreadTS(got) != want {
			t.Errorf("%s: %+v, want %q", answered, got, want)
		}
	}
}
