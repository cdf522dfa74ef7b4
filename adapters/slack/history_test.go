package slack_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
)

// handed keeps what was handed over, as "kind text" in its order.
type handed struct {
	t         *testing.T
	adapter   *slack.Adapter
	known     func(text string) bool // nil: nothing is
	lines     []string
	envelopes []event.Envelope
}

// strangers are facts that nobody has told of.
type strangers struct{}

func (strangers) Self() event.Self { return event.Self{TeamID: slacktest.Team} }

func (strangers) ChannelType(string) event.ChannelType { return event.ChannelUnknown }

func (strangers) User(context.Context, string) (adapters.User, bool) { return adapters.User{}, false }

func (strangers) ChannelName(context.Context, string) (string, bool) { return "", false }

func (h *handed) take(_ time.Time, envelope event.Envelope) (bool, error) {
	e, err := h.adapter.Normalize(h.t.Context(), envelope, strangers{})
	if err != nil || envelope.Transport != event.CatchUp {
		h.t.Errorf("%s: %v", envelope.Body, err)
	}
	text := ""
	if e.Message != nil {
		text = e.Message.Content
	}
	h.lines = append(h.lines, strings.TrimSpace(fmt.Sprint(e.Kind, " ", text)))
	h.envelopes = append(h.envelopes, envelope)
	return h.known != nil && h.known(text), nil
}

// since is the time from a minute before noon to a minute after it.
var since = event.Gap{Place: room, From: noon.Add(-time.Minute), Until: noon.Add(time.Minute)}

// missed reads what was missed of a place.
func missed(t *testing.T, adapter *slack.Adapter, gap event.Gap, bounds adapters.Bounds) *handed {
	t.Helper()
	h := &handed{t: t, adapter: adapter}
	if bounds.Messages == 0 {
		bounds.Messages = 1000
	}
	if _, err := adapter.Missed(t.Context(), gap, bounds, h.take); err != nil {
		t.Fatal(err)
	}
	return h
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// put places somebody's message so long after noon.
func put(s *slacktest.Server, after time.Duration, text, root string) slacktest.Post {
	return s.Put(slacktest.Post{Channel: room, User: "U1", Text: text, ThreadTS: root, TS: slacktest.Timestamp(noon.Add(after))})
}

func TestWhatWasMissedIsHandedOverInOrder(t *testing.T) {
	server, adapter := connect(t, slacktest.Options{})
	old := put(server, -time.Hour*30, "an old root", "")
	put(server, -2*time.Minute, "before", "")
	root := put(server, 1*time.Second, "one", "")
	put(server, 3*time.Second, "three", "")
	put(server, 2*time.Second, "two, a reply", root.TS)
	put(server, 4*time.Second, "four, in the old thread", old.TS)
	put(server, -3*time.Minute, "long known, in the old thread", old.TS)
	server.Put(slacktest.Post{Channel: room, User: slacktest.BotUser, BotID: slacktest.BotID, Text: "ours"})
	put(server, 2*time.Minute, "live", "")
	lively := []event.ThreadKey{event.ThreadKey("slack:acme:" + room + ":" + old.TS), "slack:acme:C0OTHER:1600000000.000100", "slack:acme:" + room}
	h := missed(t, adapter, since, adapters.Bounds{Threads: lively})
	same(t, "handed over", h.lines, []string{"message one", "message two, a reply", "message three", "message four, in the old thread"})
}

// TestAMissedMessageHasItsEventsKeys compares with the event that Slack sends.
func TestAMissedMessageHasItsEventsKeys(t *testing.T) {
	for name, of := range map[string]struct {
		channel slacktest.Channel
		kind    string
		reply   bool
	}{
		"in a channel":         {slacktest.Channel{ID: room}, "channel", false},
		"in a thread":          {slacktest.Channel{ID: room}, "channel", true},
		"in a private channel": {slacktest.Channel{ID: room, Kind: slacktest.PrivateChannel}, "group", false},
		"in a group":           {slacktest.Channel{ID: "C0GROUP", Kind: slacktest.GroupMessage}, "mpim", false},
		"to us alone":          {slacktest.Channel{ID: "D0DIRECT"}, "im", false},
	} {
		t.Run(name, func(t *testing.T) {
			server, adapter := connect(t, slacktest.Options{})
			server.SetChannel(of.channel)
			post := slacktest.Post{Channel: of.channel.ID, User: "U1", Text: "hi <@U0BOT>"}
			if of.reply {
				post.ThreadTS = put(server, -time.Second, "the root", "").TS
			}
			post = server.Put(post)
			gap := since
			gap.Place, gap.From = of.channel.ID, noon
			places, err := adapter.Places(t.Context())
			if err != nil || !slices.Contains(places, gap.Place) {
				t.Fatalf("%v, %v", places, err)
			}
			h := missed(t, adapter, gap, adapters.Bounds{})
			live := slacktest.Message{Channel: post.Channel, ChannelType: of.kind, User: post.User, Text: post.Text, TS: post.TS, ThreadTS: post.ThreadTS}
			want := adapter.Keys(event.Envelope{Body: live.Event()}, strangers{})
			if len(h.envelopes) != 1 {
				t.Fatalf("%v", h.lines)
			}
			same(t, "keys", adapter.Keys(h.envelopes[0], strangers{}), want)
		})
	}
}

// TestAMissedEditIsHandedOver, be it of a message that was known or of one from before.
func TestAMissedEditIsHandedOver(t *testing.T) {
	server, adapter := connect(t, slacktest.Options{})
	before, untouched := put(server, -10*time.Minute, "before", ""), put(server, -9*time.Minute, "untouched", "")
	root := put(server, -8*time.Minute, "a root", "")
	put(server, -7*time.Minute, "its reply", root.TS)
	known, other := put(server, time.Second, "known", ""), put(server, 2*time.Second, "unknown", "")
	for _, p := range []slacktest.Post{before, known, other} {
		server.Edit(room, p.TS, p.Text+", edited")
	}
	server.Delete(room, root.TS)
	h := &handed{t: t, adapter: adapter, known: func(text string) bool { return strings.HasPrefix(text, "known") }}
	if _, err := adapter.Missed(t.Context(), since, adapters.Bounds{Messages: 10}, h.take); err != nil {
		t.Fatal(err)
	}
	same(t, "handed over", h.lines, []string{
		"edit before, edited", "delete", "message known, edited", "edit known, edited", "message unknown, edited",
	})
	_ = untouched
}

func TestTheNewestOfTooMuchIsRead(t *testing.T) {
	server, adapter := connect(t, slacktest.Options{})
	for i := range 450 {
		put(server, time.Duration(i)*time.Millisecond, fmt.Sprint(i), "")
	}
	h := &handed{t: t, adapter: adapter}
	cut, err := adapter.Missed(t.Context(), since, adapters.Bounds{Messages: 250}, h.take)
	if err != nil || !cut || len(h.lines) != 250 || h.lines[0] != "message 200" || h.lines[249] != "message 449" {
		t.Errorf("%d of %v, %v, %v", len(h.lines), h.lines[:1], cut, err)
	}
	h = &handed{t: t, adapter: adapter}
	if cut, err = adapter.Missed(t.Context(), since, adapters.Bounds{Messages: 450}, h.take); cut || err != nil || len(h.lines) != 450 {
		t.Errorf("%d, %v, %v", len(h.lines), cut, err)
	}
}

// TestTheWaitOfA429IsKept makes Slack refuse two calls.
func TestTheWaitOfA429IsKept(t *testing.T) {
	var mu sync.Mutex
	var times []time.Time
	server, adapter := connect(t, slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "conversations.history" {
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Now())
		}
	}})
	put(server, 0, "one", "")
	server.Script("conversations.history", slacktest.RateLimited(time.Second), slacktest.Fault{Error: "ratelimited"})
	h := missed(t, adapter, since, adapters.Bounds{})
	same(t, "handed over", h.lines, []string{"message one"})
	if len(times) != 3 || times[1].Sub(times[0]) < time.Second || times[2].Sub(times[1]) < time.Second {
		t.Errorf("asked at %v", times)
	}
}

func TestWhatCantBeReadNeedsTheOperator(t *testing.T) {
	server, adapter := connect(t, slacktest.Options{})
	put(server, 0, "one", "")
	for code, hint := range map[string]string{"not_in_channel": "invite the bot", "missing_scope": "groups", "invalid_something": "docs.slack.dev"} {
		server.Script("conversations.history", slacktest.Fault{Error: code})
		_, err := adapter.Missed(t.Context(), since, adapters.Bounds{Messages: 10}, nil)
		var refused *adapters.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Hint, hint) {
			t.Errorf("%s: %v", code, err)
		}
	}
	server.Script("conversations.history", slacktest.Fault{Error: "internal_error"}, slacktest.Fault{Status: 503}, slacktest.Fault{Error: "token_revoked"})
	for range 3 {
		_, err := adapter.Missed(t.Context(), since, adapters.Bounds{Messages: 10}, nil)
		var refused *adapters.RefusedError
		if err == nil || errors.As(err, &refused) {
			t.Errorf("for good: %v", err)
		}
	}
}

// TestPlacesThatMayBeListedAreListed: without a scope of one kind, the others are.
func TestPlacesThatMayBeListedAreListed(t *testing.T) {
	scopes := slices.DeleteFunc(slacktest.AllScopes(), func(s string) bool { return s == "groups:read" || s == "mpim:read" })
	server, adapter := connect(t, slacktest.Options{Scopes: scopes})
	server.SetChannel(slacktest.Channel{ID: room})
	server.SetChannel(slacktest.Channel{ID: "C0PRIVATE", Kind: slacktest.PrivateChannel})
	server.SetChannel(slacktest.Channel{ID: "C0ELSEWHERE", NotMember: true})
	server.SetChannel(slacktest.Channel{ID: "D0MARA"})
	places, err := adapter.Places(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "places", places, []string{room, "D0MARA"})

	_, adapter = connect(t, slacktest.Options{Scopes: []string{"chat:write"}})
	var refused *adapters.RefusedError
	if places, err := adapter.Places(t.Context()); !errors.As(err, &refused) {
		t.Errorf("%v, %v", places, err)
	}
}

// TestManyPlacesComeInPages, all of them, and the pace of the method is kept.
func TestManyPlacesComeInPages(t *testing.T) {
	var pages []url.Values
	server, adapter := connect(t, slacktest.Options{OnCall: func(c slacktest.Call) { pages = append(pages, c.Form) }})
	for i := range 450 {
		server.SetChannel(slacktest.Channel{ID: fmt.Sprintf("C0%03d", i)})
	}
	places, err := adapter.Places(t.Context())
	if err != nil || len(places) != 450 || len(pages) != 3 {
		t.Errorf("%d places in %d pages, %v", len(places), len(pages), err)
	}
}

// TestThePaceOfAMethodIsKept: a burst, and then what Slack takes in a minute.
func TestThePaceOfAMethodIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		slack.Paced(t.Context(), 150, func() { at = append(at, time.Since(begun)) })
		if at[49] != 0 || at[50] != 1200*time.Millisecond || at[149] != 2*time.Minute {
			t.Errorf("%v %v %v", at[49], at[50], at[149])
		}
	})
}

// before reads what was said in a thread before a message, in words.
func before(t *testing.T, adapter *slack.Adapter, root, upTo string, newest int) (words []string, read adapters.Before) {
	t.Helper()
	read, err := adapter.Before(t.Context(), event.ThreadKey("slack:acme:"+room+":"+root), room+"/"+upTo, newest)
	if err != nil {
		t.Fatal(err)
	}
	for _, envelope := range read.Envelopes {
		e, err := adapter.Normalize(t.Context(), envelope, strangers{})
		if err != nil || e.Message == nil || e.Message.Channel.ID != room || envelope.Transport != event.Reread {
			t.Fatalf("%s: %v", envelope.Body, err)
		}
		words = append(words, e.Message.Content)
	}
	return words, read
}

func TestAThreadIsReadUpToTheMessageThatAsks(t *testing.T) {
	server, adapter := connect(t, slacktest.Options{})
	root := put(server, 0, "root", "")
	for i := range 5 {
		put(server, time.Duration(i+1)*time.Second, fmt.Sprint(i+1), root.TS)
	}
	asks := put(server, 10*time.Second, "<@U0BOT> now?", root.TS)
	put(server, 11*time.Second, "later", root.TS)
	words, read := before(t, adapter, root.TS, asks.TS, 3)
	same(t, "read", words, []string{"root", "3", "4", "5"})
	same(t, "left out", read.Earlier, 2)
	if words, read = before(t, adapter, root.TS, asks.TS, 20); len(words) != 6 || read.Earlier != 0 || read.Gap {
		t.Errorf("%v, %+v", words, read)
	}
	words, _ = before(t, adapter, root.TS, asks.TS, 0)
	same(t, "the root alone", words, []string{"root"})
	if words, read = before(t, adapter, "1600000000.000100", asks.TS, 3); len(words) != 0 || read.Gap {
		t.Errorf("of a thread that is gone: %v, %+v", words, read)
	}
}

// TestTheEndOfAVeryLongThreadIsFound by its time: most of it was said long ago.
func TestTheEndOfAVeryLongThreadIsFound(t *testing.T) {
	calls := 0
	server, adapter := connect(t, slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "conversations.replies" {
			calls++
		}
	}})
	root := put(server, 0, "root", "")
	const replies = 5000
	for i := range replies {
		after := time.Duration(i+1) * time.Second
		if i >= replies/2 {
			after = time.Duration(i+1) * time.Minute
		}
		put(server, after, fmt.Sprint(i+1), root.TS)
	}
	asks := put(server, (replies+1)*time.Minute, "<@U0BOT> now?", root.TS)
	words, read := before(t, adapter, root.TS, asks.TS, 2)
	same(t, "read", words, []string{"root", "4999", "5000"})
	if read.Gap || read.Earlier != replies-2 || calls > 6 {
		t.Errorf("%d left out, gap %v, %d calls", read.Earlier, read.Gap, calls)
	}
	server.Script("conversations.replies", slacktest.Fault{}, slacktest.RateLimited(time.Minute))
	words, read = before(t, adapter, root.TS, asks.TS, 2)
	same(t, "without its end", words, []string{"root"})
	same(t, "a gap", read.Gap, true)
}

func TestThreadsThatBeginWithUsAreNotRead(t *testing.T) {
	_, adapter := connect(t, slacktest.Options{})
	for key, want := range map[event.ThreadKey]string{
		"slack:acme:C1:1700000000.000100": "C1/1700000000.000100",
		"slack:acme:G1:1700000000.000100": "G1/1700000000.000100",
		"slack:acme:D1:1700000000.000100": "",
		"slack:acme:D1":                   "",
		"slack:acme:G1":                   "",
		"web:acme:1":                      "",
	} {
		if root, ok := adapter.Root(key); root != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", key, root, ok)
		}
	}
}
