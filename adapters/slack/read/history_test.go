package read_test

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
	"parley/adapters/adaptertest"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
	"parley/ingest/event"
)

// recorder records the messages that backfill hands over, as "kind text", in order.
type recorder struct {
	t         *testing.T
	adapter   *slack.Adapter
	known     func(text string) bool // reports whether the journal knows a message; nil means that it knows none
	lines     []string
	envelopes []event.Envelope
	threads   []event.ThreadKey // of every message
}

// noFacts are facts without channel types and users.
type noFacts struct{}

func (noFacts) Self() event.Self { return event.Self{TeamID: slacktest.Team} }

func (noFacts) ChannelType(string) event.ChannelType { return event.ChannelUnknown }

func (noFacts) State() adapters.State { return adaptertest.NewState() }

func (noFacts) User(context.Context, string) (adapters.User, bool) { return adapters.User{}, false }

func (h *recorder) take(envelope *event.Envelope) (known bool) {
	if envelope == nil {
		return true
	}
	e, err := h.adapter.Normalize(h.t.Context(), *envelope, noFacts{})
	if err != nil || envelope.Transport != event.Backfilled {
		h.t.Errorf("%s: %v", envelope.Body, err)
	}
	text := ""
	if e.Message != nil {
		text = e.Message.Content
	}
	h.lines = append(h.lines, strings.TrimSpace(fmt.Sprint(e.Kind, " ", text)))
	h.envelopes = append(h.envelopes, *envelope)
	return h.known != nil && h.known(text)
}

// reading returns the reading of a gap for which a turn waits.
func (h *recorder) reading(gap event.Gap, messages int) adapters.Reading {
	urgent := make(chan struct{})
	close(urgent)
	return adapters.Reading{Gap: gap, Messages: messages, Urgent: urgent, Hand: func(thread event.ThreadKey, list []adapters.Missed) error {
		h.threads = append(h.threads, thread)
		for _, m := range list {
			if h.take(m.New) {
				h.take(m.Change)
			}
		}
		return nil
	}}
}

// testGap reaches from a minute before noon to a minute after it.
var testGap = event.Gap{Channel: testapp.Room, From: testapp.Noon.Add(-time.Minute), Until: testapp.Noon.Add(time.Minute)}

// readGap reads a channel and then the threads that ReadChannel returns.
func readGap(t *testing.T, adapter *slack.Adapter, gap event.Gap, messages int) (*recorder, adapters.Found) {
	t.Helper()
	h := &recorder{t: t, adapter: adapter}
	return h, h.read(gap, messages)
}

func (h *recorder) read(gap event.Gap, messages int) adapters.Found {
	h.t.Helper()
	found, err := h.adapter.ReadChannel(h.t.Context(), h.reading(gap, messages))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, thread := range found.Threads {
		if err := h.adapter.ReadThread(h.t.Context(), thread, h.reading(gap, messages)); err != nil {
			h.t.Fatal(err)
		}
	}
	return found
}

func checkEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// put stores a message of user U1, sent at the given time after noon.
func put(s *slacktest.Server, after time.Duration, text, root string) slacktest.Post {
	return s.Put(slacktest.Post{Channel: testapp.Room, User: "U1", Text: text, ThreadTS: root, TS: slacktest.Timestamp(testapp.Noon.Add(after))})
}

func threadOf(root slacktest.Post) event.ThreadKey {
	return event.ThreadKey("slack:acme:" + root.Channel + ":" + root.TS)
}

// TestReadChannelLeavesThreadsWithReplies checks that a page of the channel shows which threads
// have replies in the gap, however old they are, and which have none.
func TestReadChannelLeavesThreadsWithReplies(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	old := put(server, -time.Hour*30, "an old root", "")
	before := put(server, -2*time.Minute, "before", "")
	root := put(server, 1*time.Second, "one", "")
	three := put(server, 3*time.Second, "three", "")
	put(server, 2*time.Second, "two, a reply", root.TS)
	put(server, 4*time.Second, "four, in the old thread", old.TS)
	ours := server.Put(slacktest.Post{Channel: testapp.Room, User: slacktest.BotUser, BotID: slacktest.BotID, Text: "ours", TS: slacktest.Timestamp(testapp.Noon.Add(5 * time.Second))})
	put(server, 2*time.Minute, "live", "")
	h := &recorder{t: t, adapter: adapter}
	found, err := adapter.ReadChannel(t.Context(), h.reading(testGap, 10))
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, "handed over", h.lines, []string{"message three"})
	checkEqual(t, "threads that are read", h.threads, []event.ThreadKey{threadOf(before), threadOf(three), threadOf(ours)})
	checkEqual(t, "threads left to ReadThread", found.Threads, []event.ThreadKey{threadOf(old), threadOf(root)})
}

// TestReadThreadReadsOldestFirst reads a thread of several pages, and a conversation.
func TestReadThreadReadsOldestFirst(t *testing.T) {
	var limits []string
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "conversations.replies" {
			limits = append(limits, c.Form.Get("limit"))
		}
	}})
	old := put(server, -time.Hour*30, "an old root", "")
	put(server, -3*time.Minute, "known", old.TS)
	var want []string
	for i := range 250 {
		want = append(want, fmt.Sprint("message ", i))
		put(server, time.Duration(i)*time.Millisecond, fmt.Sprint(i), old.TS)
	}
	put(server, 2*time.Minute, "live", old.TS)
	h := &recorder{t: t, adapter: adapter}
	if err := adapter.ReadThread(t.Context(), threadOf(old), h.reading(testGap, 10)); err != nil {
		t.Fatal(err)
	}
	checkEqual(t, "handed over", h.lines, want)
	checkEqual(t, "calls", len(limits), 2)

	server.SetChannel(slacktest.Channel{ID: "D0DIRECT"})
	for i := range 3 {
		server.Put(slacktest.Post{Channel: "D0DIRECT", User: "U1", Text: fmt.Sprint(i), TS: slacktest.Timestamp(testapp.Noon.Add(time.Duration(i) * time.Second))})
	}
	h = &recorder{t: t, adapter: adapter}
	if err := adapter.ReadThread(t.Context(), "slack:acme:D0DIRECT", h.reading(testGap, 10)); err != nil {
		t.Fatal(err)
	}
	checkEqual(t, "of a conversation", h.lines, []string{"message 0", "message 1", "message 2"})
}

// TestBroadcastReplyNamesItsThread: the channel alone does not contain the thread's
// other replies.
func TestBroadcastReplyNamesItsThread(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	old := put(server, -time.Hour*30, "an old root", "")
	put(server, time.Second, "one", old.TS)
	server.Put(slacktest.Post{Channel: testapp.Room, User: "U1", Text: "two", ThreadTS: old.TS, Subtype: "thread_broadcast", TS: slacktest.Timestamp(testapp.Noon.Add(2 * time.Second))})
	h, found := readGap(t, adapter, testGap, 10)
	checkEqual(t, "threads", found.Threads, []event.ThreadKey{threadOf(old)})
	checkEqual(t, "handed over", h.lines, []string{"message one", "message two"})
}

func TestBegan(t *testing.T) {
	_, adapter := testapp.Start(t, slacktest.Options{})
	for key, want := range map[event.ThreadKey]string{
		"slack:acme:C1:1700000000.000100": "C1 1700000000",
		"slack:acme:D1:1700000000.000100": "D1 1700000000",
		"slack:acme:D1":                   "D1 always",
		"slack:acme:C1:command-12.3":      "never",
		"web:acme:1":                      "never",
	} {
		channel, at, ok := adapter.Began(key)
		got := "never"
		switch {
		case ok && at.IsZero():
			got = channel + " always"
		case ok:
			got = fmt.Sprint(channel, " ", at.Unix())
		}
		checkEqual(t, string(key), got, want)
	}
}

// TestBackfilledMessageHasTheKeysOfItsEvent compares the keys with those of the event
// that Slack sends.
func TestBackfilledMessageHasTheKeysOfItsEvent(t *testing.T) {
	for name, of := range map[string]struct {
		channel slacktest.Channel
		kind    string
		reply   bool
	}{
		"in a channel":         {slacktest.Channel{ID: testapp.Room}, "channel", false},
		"in a thread":          {slacktest.Channel{ID: testapp.Room}, "channel", true},
		"in a private channel": {slacktest.Channel{ID: testapp.Room, Kind: slacktest.PrivateChannel}, "group", false},
		"in a group":           {slacktest.Channel{ID: "C0GROUP", Kind: slacktest.GroupMessage}, "mpim", false},
		"in a direct message":  {slacktest.Channel{ID: "D0DIRECT"}, "im", false},
	} {
		t.Run(name, func(t *testing.T) {
			server, adapter := testapp.Start(t, slacktest.Options{})
			server.SetChannel(of.channel)
			post := slacktest.Post{Channel: of.channel.ID, User: "U1", Text: "hi <@U0BOT>"}
			if of.reply {
				post.ThreadTS = put(server, -time.Second, "the root", "").TS
			}
			post = server.Put(post)
			gap := testGap
			gap.Channel, gap.From = of.channel.ID, testapp.Noon
			channels, err := adapter.Channels(t.Context())
			if err != nil || !slices.Contains(channels, gap.Channel) {
				t.Fatalf("%v, %v", channels, err)
			}
			h, _ := readGap(t, adapter, gap, 10)
			live := slacktest.Message{Channel: post.Channel, ChannelType: of.kind, User: post.User, Text: post.Text, TS: post.TS, ThreadTS: post.ThreadTS}
			want := adapter.Keys(event.Envelope{Workspace: "acme", Body: live.Event()}, noFacts{})
			if len(h.envelopes) != 1 {
				t.Fatalf("%v", h.lines)
			}
			got := adapter.Keys(h.envelopes[0], noFacts{})
			got.Parsed, want.Parsed = nil, nil
			checkEqual(t, "keys", got, want)
		})
	}
}

// TestBackfillReportsEdits edits messages from before the gap and from inside it.
func TestBackfillReportsEdits(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	before := put(server, -10*time.Minute, "before", "")
	put(server, -9*time.Minute, "untouched", "")
	root := put(server, -8*time.Minute, "a root", "")
	put(server, -7*time.Minute, "its reply", root.TS)
	known, other := put(server, time.Second, "known", ""), put(server, 2*time.Second, "unknown", "")
	for _, p := range []slacktest.Post{before, known, other} {
		server.Edit(testapp.Room, p.TS, p.Text+", edited")
	}
	server.Delete(testapp.Room, root.TS)
	h := &recorder{t: t, adapter: adapter, known: func(text string) bool { return strings.HasPrefix(text, "known") }}
	h.read(testGap, 10)
	checkEqual(t, "handed over", h.lines, []string{
		"edit before, edited", "delete", "message known, edited", "edit known, edited", "message unknown, edited",
	})
}

func TestReadChannelKeepsTheNewestMessages(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	for i := range 450 {
		put(server, time.Duration(i)*time.Millisecond, fmt.Sprint(i), "")
	}
	h, found := readGap(t, adapter, testGap, 250)
	if !found.Cut || len(h.lines) != 250 || h.lines[0] != "message 200" || h.lines[249] != "message 449" {
		t.Errorf("%d of %v, %v", len(h.lines), h.lines[:1], found.Cut)
	}
	if h, found = readGap(t, adapter, testGap, 450); found.Cut || len(h.lines) != 450 {
		t.Errorf("%d, %v", len(h.lines), found.Cut)
	}
}

// TestBackfillWaitsAfterARateLimit makes Slack refuse two calls.
func TestBackfillWaitsAfterARateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var times []time.Time
		server := testapp.StartMemory(t, slacktest.Options{
			Now: func() time.Time { return testapp.Noon },
			OnCall: func(c slacktest.Call) {
				if c.Method == "conversations.history" {
					mu.Lock()
					defer mu.Unlock()
					times = append(times, time.Now())
				}
			},
		})
		adapter := testapp.New(server.URL())
		adapter.Client.Transport.DialContext = server.Listener.Dial
		put(server.Server, 0, "one", "")
		server.Script("conversations.history", slacktest.RateLimited(time.Second), slacktest.Fault{Error: "ratelimited"})
		h, _ := readGap(t, adapter, testGap, 10)
		checkEqual(t, "handed over", h.lines, []string{"message one"})
		if len(times) != 3 || times[1].Sub(times[0]) < time.Second || times[2].Sub(times[1]) < time.Second {
			t.Errorf("called at %v", times)
		}
	})
}

func TestBackfillRefusalsNeedTheOperator(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	put(server, 0, "one", "")
	for code, hint := range map[string]string{"not_in_channel": "invite the bot", "missing_scope": "groups", "invalid_something": "docs.slack.dev"} {
		server.Script("conversations.history", slacktest.Fault{Error: code})
		_, err := adapter.ReadChannel(t.Context(), new(recorder).reading(testGap, 10))
		var refused *adapters.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Hint, hint) {
			t.Errorf("%s: %v", code, err)
		}
	}
	server.Script("conversations.history", slacktest.Fault{Error: "internal_error"}, slacktest.Fault{Status: 503}, slacktest.Fault{Error: "token_revoked"})
	for range 3 {
		_, err := adapter.ReadChannel(t.Context(), new(recorder).reading(testGap, 10))
		var refused *adapters.RefusedError
		if err == nil || errors.As(err, &refused) {
			t.Errorf("a passing error is refused: %v", err)
		}
	}
}

// TestChannelsListsThePermittedKinds lacks the scopes of two kinds of channel.
func TestChannelsListsThePermittedKinds(t *testing.T) {
	scopes := slices.DeleteFunc(slacktest.AllScopes(), func(s string) bool { return s == "groups:read" || s == "mpim:read" })
	server, adapter := testapp.Start(t, slacktest.Options{Scopes: scopes})
	server.SetChannel(slacktest.Channel{ID: testapp.Room})
	server.SetChannel(slacktest.Channel{ID: "C0PRIVATE", Kind: slacktest.PrivateChannel})
	server.SetChannel(slacktest.Channel{ID: "C0ELSEWHERE", NotMember: true})
	server.SetChannel(slacktest.Channel{ID: "D0MARA"})
	channels, err := adapter.Channels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, "channels", channels, []string{testapp.Room, "D0MARA"})

	_, adapter = testapp.Start(t, slacktest.Options{Scopes: []string{"chat:write"}})
	var refused *adapters.RefusedError
	if channels, err := adapter.Channels(t.Context()); !errors.As(err, &refused) {
		t.Errorf("%v, %v", channels, err)
	}
}

// TestChannelsReadsEveryPage reads 450 channels in three pages.
func TestChannelsReadsEveryPage(t *testing.T) {
	var pages []url.Values
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) { pages = append(pages, c.Form) }})
	for i := range 450 {
		server.SetChannel(slacktest.Channel{ID: fmt.Sprintf("C0%03d", i)})
	}
	channels, err := adapter.Channels(t.Context())
	if err != nil || len(channels) != 450 || len(pages) != 3 {
		t.Errorf("%d channels in %d pages, %v", len(channels), len(pages), err)
	}
}

// TestARateLimitConcernsTheMethod proves that context reads and read-backs are made until
// Slack refuses one, and that then none is made while the rate limit lasts, also by the
// adapter of a reload that has the same token.
func TestARateLimitConcernsTheMethod(t *testing.T) {
	calls := 0
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "conversations.replies" {
			calls++
		}
	}})
	root := put(server, 0, "root", "")
	post := testapp.Post("k1")
	post.To = adapters.Address{Channel: testapp.Room, Place: root.TS}
	for range 25 {
		readBefore(t, adapter, root.TS, "", 1)
		if _, found, err := adapter.Find(t.Context(), post); found || err != nil {
			t.Fatalf("found %v, %v", found, err)
		}
	}
	reloaded := testapp.New(server.URL())
	reloaded.Inherit(adapter)
	server.Script("conversations.replies", slacktest.RateLimited(time.Minute))
	for _, adapter := range []*slack.Adapter{adapter, reloaded} {
		_, _, err := adapter.Find(t.Context(), post)
		var failure *adapters.SendError
		if !errors.As(err, &failure) || failure.Failure != adapters.RateLimited || failure.RetryAfter <= 0 || failure.RetryAfter > time.Minute {
			t.Errorf("a read-back during a rate limit: %v", err)
		}
		if _, err := adapter.ReadHistory(t.Context(), threadOf(root), "", 1); err == nil {
			t.Error("a context read during a rate limit succeeds")
		}
	}
	checkEqual(t, "calls", calls, 51)
	server, _ = testapp.Start(t, slacktest.Options{Token: "xoxb-another"})
	c := testapp.Config(server.URL())
	c.BotToken = secret.New("xoxb-another")
	other := slack.New("acme", c)
	other.Inherit(adapter)
	if _, found, err := other.Find(t.Context(), post); found || err != nil {
		t.Errorf("with another token: %v, %v", found, err)
	}
}

// readBefore reads the messages of a thread before a message.
func readBefore(t *testing.T, adapter *slack.Adapter, root, upTo string, newest int) (words []string, read adapters.ThreadHistory) {
	t.Helper()
	read, err := adapter.ReadHistory(t.Context(), event.ThreadKey("slack:acme:"+testapp.Room+":"+root), testapp.Room+"/"+upTo, newest)
	if err != nil {
		t.Fatal(err)
	}
	for _, envelope := range read.Envelopes {
		e, err := adapter.Normalize(t.Context(), envelope, noFacts{})
		if err != nil || e.Message == nil || e.Message.Channel.ID != testapp.Room || envelope.Transport != event.Reread {
			t.Fatalf("%s: %v", envelope.Body, err)
		}
		words = append(words, e.Message.Content)
	}
	return words, read
}

func TestBeforeEndsAtTheRequest(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	root := put(server, 0, "root", "")
	for i := range 5 {
		put(server, time.Duration(i+1)*time.Second, fmt.Sprint(i+1), root.TS)
	}
	asks := put(server, 10*time.Second, "<@U0BOT> now?", root.TS)
	put(server, 11*time.Second, "later", root.TS)
	words, read := readBefore(t, adapter, root.TS, asks.TS, 3)
	checkEqual(t, "read", words, []string{"root", "3", "4", "5"})
	checkEqual(t, "left out", read.Earlier, 2)
	if words, read = readBefore(t, adapter, root.TS, asks.TS, 20); len(words) != 6 || read.Earlier != 0 || read.Gap {
		t.Errorf("%v, %+v", words, read)
	}
	words, _ = readBefore(t, adapter, root.TS, asks.TS, 0)
	checkEqual(t, "the root alone", words, []string{"root"})
	if words, read = readBefore(t, adapter, "1600000000.000100", asks.TS, 3); len(words) != 0 || read.Gap {
		t.Errorf("of a deleted thread: %v, %+v", words, read)
	}
}

// TestBeforeFindsTheEndOfAVeryLongThread uses a thread with few recent replies and many
// old ones.
func TestBeforeFindsTheEndOfAVeryLongThread(t *testing.T) {
	calls := 0
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) {
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
	words, read := readBefore(t, adapter, root.TS, asks.TS, 2)
	checkEqual(t, "read", words, []string{"root", "4999", "5000"})
	if read.Gap || read.Earlier != replies-2 || calls > 6 {
		t.Errorf("%d left out, gap %v, %d calls", read.Earlier, read.Gap, calls)
	}
	server.Script("conversations.replies", slacktest.Fault{}, slacktest.RateLimited(time.Minute))
	words, read = readBefore(t, adapter, root.TS, asks.TS, 2)
	checkEqual(t, "without its end", words, []string{"root"})
	checkEqual(t, "a gap", read.Gap, true)
}

func TestRoot(t *testing.T) {
	_, adapter := testapp.Start(t, slacktest.Options{})
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
