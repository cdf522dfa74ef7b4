package send_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
)

// outside is a command in a channel without the bot.
type outside struct {
	server  *slacktest.Server
	adapter *slack.Adapter
	now     time.Time
	message *event.Message
	post    adapters.Post
}

// commandIn returns a command of a user in a channel, which takes answers at an address.
func commandIn(channel, responseURL string, at time.Time) event.Envelope {
	body := fmt.Sprintf(`{"command":"/ask","text":"why?","channel_id":%q,"user_id":"UMARA0001","trigger_id":"1.2.a","response_url":%q}`, channel, responseURL)
	return event.Envelope{Workspace: "acme", Platform: event.Slack, ReceivedAt: at, Body: []byte(body)}
}

// directory is a directory that has nothing but a state.
type directory struct{ state *adaptertest.State }

func (directory) Self() event.Self { return event.Self{} }

func (directory) ChannelType(string) event.ChannelType { return event.ChannelUnknown }

func (directory) User(context.Context, string) (adapters.User, bool) { return adapters.User{}, false }

func (d directory) State() adapters.State { return d.state }

// shortcutIn returns a shortcut of a user on a message in a channel.
func shortcutIn(channel, responseURL string, at time.Time) event.Envelope {
	body := fmt.Sprintf(`{"type":"message_action","callback_id":"ask","trigger_id":"1.2.a","channel":{"id":%q},"user":{"id":"UMARA0001"},"response_url":%q,
		"message":{"type":"message","user":"UTOMAS001","text":"look","ts":"1750000000.000100"}}`, channel, responseURL)
	return event.Envelope{Workspace: "acme", Platform: event.Slack, ReceivedAt: at, Body: []byte(body)}
}

func startOutside(t *testing.T, channel string, askedIn func(channel, responseURL string, at time.Time) event.Envelope) *outside {
	t.Helper()
	o := &outside{now: time.Now()}
	o.server, o.adapter = testapp.Start(t, slacktest.Options{Now: func() time.Time { return o.now }})
	o.server.SetChannel(slacktest.Channel{ID: channel, NotMember: true})
	o.adapter.Client.Now = func() time.Time { return o.now }
	state := adaptertest.NewState()
	o.adapter.UseState(state)
	envelope := askedIn(channel, o.server.ResponseURL("one"), o.now)
	for range 2 { // the event is read again after a failure
		got, err := o.adapter.Normalize(t.Context(), envelope, directory{state})
		if err != nil {
			t.Fatal(err)
		}
		o.message = got.Message
	}
	to, err := o.adapter.Address(o.message.Thread, o.message.ExternalID)
	if err != nil {
		t.Fatal(err)
	}
	o.post = adapters.Post{Key: "k1", To: to, Text: "**Because.**", Asker: "UMARA0001"}
	return o
}

// TestCommandsWhereTheBotIsNoMember: the answers, the notices and the refused files of a command go
// to its response URL, which takes five messages. It takes no presses of buttons, so the options are words. The
// last message says that no further one can follow.
func TestCommandsWhereTheBotIsNoMember(t *testing.T) {
	for _, channel := range []string{"C0AWAY", "D0TWO"} {
		t.Run(channel, func(t *testing.T) { checkOutside(t, startOutside(t, channel, commandIn)) })
	}
}

func checkOutside(t *testing.T, o *outside) {
	t.Helper()
	growing := o.post
	growing.Growing = true
	if _, err := o.adapter.Send(t.Context(), growing); err == nil {
		t.Error("a live preview uses the response URL")
	}
	long := o.post
	long.Text = strings.Repeat("word ", 2000)
	for i, post := range []adapters.Post{o.post, long} {
		if id, err := o.adapter.Send(t.Context(), post); err != nil || id == "" {
			t.Errorf("answer %d: id %q, %v", i, id, err)
		}
	}
	plot := o.post
	plot.File = file("plot.png", "plot")
	if _, err := o.adapter.Send(t.Context(), plot); err != nil {
		t.Error(err)
	}
	notice := o.post
	notice.To = o.adapter.EphemeralAddress(notice.To, o.message.ExternalID)
	if err := o.adapter.PostEphemeral(t.Context(), notice); err != nil {
		t.Error(err)
	}
	choice := o.post
	choice.Text, choice.Buttons = "Which *one*?", []adapters.Button{{ID: "parley-0", Label: "Beds & <rows>"}, {ID: "parley-1", Label: "Paths"}}
	if _, err := o.adapter.Send(t.Context(), choice); err != nil {
		t.Error(err)
	}
	if _, err := o.adapter.Send(t.Context(), o.post); failureOf(err) != adapters.Permanent {
		t.Errorf("the sixth message: %v", err)
	}
	const because = "*Because.*"
	want := []slacktest.Response{{Text: because, Everybody: true}, {Text: strings.TrimSpace(long.Text), Everybody: true},
		{Text: "I can't post the file plot.png here. Invite me to the channel with /invite, and ask again."}, {Text: because},
		{Everybody: true, Text: "Which _one_?\n1. Beds &amp; &lt;rows&gt;\n2. Paths\nI can't take your choice here. Invite me to the channel with /invite, and ask again.\n" +
			"Slack takes no more of my words here. If something is missing, invite me to the channel with /invite, and ask again."}}
	if diff := cmp.Diff(want, o.server.Responses("one")); diff != "" {
		t.Error(diff)
	}
}

// TestShortcutsWhereTheBotIsNoMember: the answers and the notices of a shortcut go to its response URL, and those to
// other people do not.
func TestShortcutsWhereTheBotIsNoMember(t *testing.T) {
	o := startOutside(t, "C0AWAY", shortcutIn)
	if _, err := o.adapter.Send(t.Context(), o.post); err != nil {
		t.Error(err)
	}
	notice := o.post
	notice.To = o.adapter.EphemeralAddress(notice.To, o.message.ExternalID)
	if err := o.adapter.PostEphemeral(t.Context(), notice); err != nil {
		t.Error(err)
	}
	other := o.post
	other.Asker = "UTOMAS001"
	if _, err := o.adapter.Send(t.Context(), other); failureOf(err) != adapters.Permanent || strings.Contains(err.Error(), "command") {
		t.Errorf("the answer to another person: %v", err)
	}
	want := []slacktest.Response{{Text: "*Because.*", Everybody: true}, {Text: "*Because.*"}}
	if diff := cmp.Diff(want, o.server.Responses("one")); diff != "" {
		t.Error(diff)
	}
}

// TestResponseURLsEnd after half an hour, and an address outside Slack gets nothing.
func TestResponseURLsEnd(t *testing.T) {
	o := startOutside(t, "C0AWAY", commandIn)
	o.now = o.now.Add(31 * time.Minute)
	if _, err := o.adapter.Send(t.Context(), o.post); failureOf(err) != adapters.Permanent {
		t.Errorf("after half an hour: %v", err)
	}
	state := adaptertest.NewState()
	o.adapter.UseState(state)
	envelope := commandIn("C0AWAY", "https://hooks.example.com/x", o.now)
	if _, err := o.adapter.Normalize(t.Context(), envelope, directory{state}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.adapter.Send(t.Context(), o.post); failureOf(err) != adapters.Permanent || !strings.Contains(err.Error(), "not slack's") {
		t.Errorf("an address outside slack: %v", err)
	}
}

// TestCommandsOfMembersArePosted: the response URL is only for channels without the bot.
func TestCommandsOfMembersArePosted(t *testing.T) {
	o := startOutside(t, "C0AWAY", commandIn)
	o.server.SetChannel(slacktest.Channel{ID: "C0AWAY"})
	if _, err := o.adapter.Send(t.Context(), o.post); err != nil {
		t.Fatal(err)
	}
	if posts := o.server.Posts(); len(posts) != 1 || posts[0].ThreadTS != "" || len(o.server.Responses("one")) != 0 {
		t.Errorf("%d posts", len(posts))
	}
}

// failureOf returns the effect of a failed call; NotSent for no failure.
func failureOf(err error) adapters.SendFailure {
	if failure, ok := errors.AsType[*adapters.SendError](err); ok {
		return failure.Failure
	}
	return adapters.NotSent
}
