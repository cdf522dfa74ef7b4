package bluebubbles_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/payload"
	"parley/adapters/guard"
	"parley/ingest/event"
)

// inbox is an adapters.Inbox that accepts each dedupe key once.
type inbox struct {
	mu      sync.Mutex
	seen    map[string]bool
	taken   []event.Envelope
	texts   []string        // "text by transport", in the order of acceptance
	busy    int             // the next envelopes that are refused
	known   map[string]bool // the messages' guids
	commit  func()          // waits for the commit; nil for no wait
	changed *sync.Cond
}

func newInbox() *inbox {
	d := &inbox{seen: map[string]bool{}, known: map[string]bool{}}
	d.changed = sync.NewCond(&d.mu)
	return d
}

func (d *inbox) Accept(_ context.Context, e event.Envelope) (adapters.Receipt, error) {
	receipt, err := d.take(e)
	if d.commit != nil {
		d.commit()
	}
	return receipt, err
}

func (d *inbox) take(e event.Envelope) (adapters.Receipt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy > 0 {
		d.busy--
		return adapters.Receipt{}, adapters.ErrBusy
	}
	if e.Queued != nil {
		e.Queued()
	}
	keys := payload.Normalizer{}.Keys(e, account{})
	if d.seen[keys.Dedupe] {
		return adapters.Receipt{Duplicate: true}, nil
	}
	d.seen[keys.Dedupe] = true
	d.taken = append(d.taken, e)
	text := string(keys.Kind)
	if n, err := (payload.Normalizer{}).Normalize(context.Background(), e, account{}); err == nil && n.Message != nil {
		text = n.Message.Content
	}
	d.texts = append(d.texts, text+" by "+e.Transport)
	waits := keys.Result == nil && keys.Thread == "" && !d.known[keys.MessageID]
	d.known[keys.MessageID] = d.known[keys.MessageID] || keys.Thread != ""
	d.changed.Broadcast()
	return adapters.Receipt{ID: int64(len(d.taken)), Waits: waits}, nil
}

// await waits until n envelopes are accepted, and returns their texts.
func (d *inbox) await(t *testing.T, n int) []string {
	t.Helper()
	stop := context.AfterFunc(t.Context(), d.changed.Broadcast)
	defer stop()
	timer := time.AfterFunc(time.Minute, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		n = 0
		d.changed.Broadcast()
	})
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.texts) < n {
		d.changed.Wait()
	}
	if n == 0 {
		t.Fatalf("only these arrived: %q", d.texts)
	}
	return append([]string(nil), d.texts...)
}

// node is an adapter with its hook and its poller.
type node struct {
	*live
	t     *testing.T
	inbox *inbox
	state adapters.State
	hook  *httptest.Server
	ups   chan event.Self
	downs chan error
	wants adapters.Wants
	log   *lines
	stop  func()
}

// lines is a log in memory.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newNode returns a node whose poller does not run yet. Its webhook is registered by hand.
func newNode(t *testing.T, options bluebubblestest.Options, change ...func(*bluebubbles.Config)) *node {
	t.Helper()
	n := &node{live: newLive(t, options), t: t, inbox: newInbox(), state: adaptertest.NewState(), ups: make(chan event.Self, 100), downs: make(chan error, 100), log: new(lines), stop: func() {}}
	c := settings(n.URL())
	for _, f := range change {
		f(&c)
	}
	n.adapter = bluebubbles.New("home", c)
	n.adapter.UseState(n.state)
	n.hook = httptest.NewServer(n.adapter.Handler(n.inbox, guard.New(func(string) {})))
	t.Cleanup(n.hook.Close)
	n.Register(n.hook.URL+"/hooks/bluebubbles/home/"+canaryWebhook, "new-message", "updated-message")
	return n
}

// start runs the poller until its first read has ended.
func (n *node) start() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	var running sync.WaitGroup
	link := adapters.Link{
		Up: func(self event.Self) { n.ups <- self }, Down: func(err error) { n.downs <- err }, State: n.state,
		Log: slog.New(slog.NewTextHandler(n.log, nil)), Wants: func() adapters.Wants { return n.wants },
	}
	running.Go(func() {
		for ctx.Err() == nil { // as the supervisor does, without its waits
			if err := n.adapter.Connections()[0].Run(ctx, n.inbox, link); err != nil {
				n.downs <- err
			}
		}
	})
	n.stop = func() {
		cancel()
		running.Wait()
	}
	n.t.Cleanup(n.stop)
	<-n.ups
}

// silent is a server that sends no webhook.
var silent = bluebubblestest.Options{Webhooks: func(string) []time.Duration { return nil }}

func (n *node) hears(text string) bluebubblestest.Message {
	m, _ := n.Say(bluebubblestest.Message{Chat: direct, From: nora, Text: text})
	return m
}

func quickly(c *bluebubbles.Config) { c.Poll = 5 * time.Millisecond }

// TestFirstStartReplaysNoHistory checks that a new workspace begins behind the server's rows,
// and that the window for changes does not return them either.
func TestFirstStartReplaysNoHistory(t *testing.T) {
	n := newNode(t, silent, quickly)
	for i := range 3 {
		n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: fmt.Sprint("old ", i), CreatedAt: time.Now().Add(-time.Second)})
	}
	n.start()
	n.hears("new")
	if diff := cmp.Diff([]string{"new by backfill"}, n.inbox.await(t, 1)); diff != "" {
		t.Error(diff)
	}
	n.stop()
	n.start() // the next start does not read the window of before the first start
	n.hears("newer")
	if diff := cmp.Diff([]string{"new by backfill", "newer by backfill"}, n.inbox.await(t, 2)); diff != "" {
		t.Error(diff)
	}
}

// TestOldRowsWithNewNumbers checks that rows from before the first start, or older than missed messages
// may be, are not handed over, although their numbers are new.
func TestOldRowsWithNewNumbers(t *testing.T) {
	n := newNode(t, silent, quickly)
	n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: "the newest", CreatedAt: time.Now().Add(-time.Minute)})
	n.start()
	n.stop()
	n.wants.MissedAge = 24 * time.Hour
	for _, age := range []time.Duration{3 * 365 * 24 * time.Hour, 2 * time.Minute} {
		n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: "restored", CreatedAt: time.Now().Add(-age)})
	}
	n.hears("new")
	n.start()
	if diff := cmp.Diff([]string{"new by backfill"}, n.inbox.await(t, 1)); diff != "" {
		t.Error(diff)
	}
	n.stop()
	if err := n.state.Put(t.Context(), "cursor", `{"row":1,"date":1,"from":1}`); err != nil {
		t.Fatal(err)
	}
	n.hears("newer")
	n.start()
	if diff := cmp.Diff([]string{"restored by backfill", "newer by backfill", "the newest by backfill"}, n.inbox.await(t, 4)[1:]); diff != "" {
		t.Errorf("a start a long time ago: %s", diff)
	}
}

// TestMissedMessagesOfAChatAreBounded checks that only the newest missed messages of each chat are handed
// over. A message of the last millisecond before the first start would be one from before it.
func TestMissedMessagesOfAChatAreBounded(t *testing.T) {
	n := newNode(t, silent, quickly)
	first := n.hears("first")
	n.start()
	n.stop()
	n.wants.MissedMessages = 3
	n.Put(bluebubblestest.Message{Chat: "iMessage;-;sam@example.org", From: "sam@example.org", Text: "elsewhere", CreatedAt: first.CreatedAt.Add(time.Millisecond)})
	for i := range 250 {
		n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: fmt.Sprint(i), CreatedAt: time.Now().Add(time.Duration(i) * time.Millisecond)})
	}
	n.start()
	if diff := cmp.Diff([]string{"elsewhere by backfill", "247 by backfill", "248 by backfill", "249 by backfill"}, n.inbox.await(t, 4)); diff != "" {
		t.Error(diff)
	}
}

// TestARenumberedServer checks that a server whose numbers are smaller than the cursor is read from the
// cursor's date on, and that its numbers are then the cursor's.
func TestARenumberedServer(t *testing.T) {
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	date := time.Now().Add(-time.Minute)
	if err := n.state.Put(t.Context(), "cursor", fmt.Sprintf(`{"row":9000,"date":%d,"from":1}`, date.UnixMilli())); err != nil {
		t.Fatal(err)
	}
	n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: "known", CreatedAt: date.Add(-time.Hour)})
	n.hears("missed")
	n.start()
	if diff := cmp.Diff([]string{"missed by backfill"}, n.inbox.await(t, 1)); diff != "" {
		t.Error(diff)
	}
	n.stop()
	stored, err := n.state.Get(t.Context(), "cursor")
	if err != nil || !strings.HasPrefix(stored, `{"row":2,`) || !strings.HasSuffix(stored, `,"from":1}`) {
		t.Errorf("the cursor is %s, %v", stored, err)
	}
	n.hears("next")
	n.start()
	if diff := cmp.Diff([]string{"missed by backfill", "next by backfill"}, n.inbox.await(t, 2)); diff != "" {
		t.Error(diff)
	}
}

// TestPollFindsWhatWebhooksMissed checks messages, edits, unsends, late attachments and
// tapbacks that no webhook reported, also those from while we were away.
func TestPollFindsWhatWebhooksMissed(t *testing.T) {
	n := newNode(t, silent, quickly)
	n.start()
	old := n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: "old", CreatedAt: time.Now().Add(-15 * time.Minute)})
	edited, unsent, late := n.hears("edited"), n.hears("unsent"), n.hears("late")
	n.inbox.await(t, 4)
	n.stop()
	n.Edit(old.GUID, "old, indeed")
	n.Edit(edited.GUID, "edited, indeed")
	n.Unsend(unsent.GUID)
	n.Arrive(late.GUID, bluebubblestest.Attachment{GUID: "at_1", Name: "late.txt"})
	n.React(edited.GUID, nora, "love")
	n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: "synced late", CreatedAt: time.Now().Add(-48 * time.Hour)})
	n.start()
	got := map[string]bool{}
	for _, text := range n.inbox.await(t, 10)[4:] {
		got[text] = true
	}
	want := map[string]bool{"old, indeed by backfill": true, "edited, indeed by backfill": true, "delete by backfill": true, "late by backfill": true, "reaction by backfill": true, "synced late by backfill": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAMessageFromTheFuture checks that a message whose sender's clock is wrong hides no later change,
// and does not choose the service of the answers.
func TestAMessageFromTheFuture(t *testing.T) {
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	n.stop()
	n.Put(bluebubblestest.Message{Chat: "SMS;-;" + nora, From: nora, Text: "early", CreatedAt: time.Now().Add(5 * time.Hour)})
	n.start()
	n.stop()
	question := n.hears("a question")
	n.start()
	n.stop()
	n.reply(t, nora, question.GUID, "yes")
	if sent := n.Sent(); sent[0].Chat != direct {
		t.Errorf("the answer went to %s", sent[0].Chat)
	}
	n.Edit(question.GUID, "another question")
	n.start()
	want := []string{"early by backfill", "a question by backfill", "yes by backfill", "another question by backfill"}
	if diff := cmp.Diff(want, n.inbox.await(t, 4)); diff != "" {
		t.Error(diff)
	}
}

// TestPollReadsAllPages checks a backlog of several pages whose rows are not in the order of
// their dates, while the server fails now and then.
func TestPollReadsAllPages(t *testing.T) {
	n := newNode(t, silent, quickly)
	n.start()
	n.stop()
	const rows = 1000
	for i := range rows {
		n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: fmt.Sprint(i), CreatedAt: time.Now().Add(-time.Duration(i*7919%rows) * time.Second)})
	}
	for range 3 {
		n.Script("POST message/query", bluebubblestest.Fault{}, bluebubblestest.Fault{}, bluebubblestest.Fault{Status: http.StatusInternalServerError})
	}
	n.start()
	n.inbox.await(t, rows)
	stored, err := n.state.Get(t.Context(), "cursor")
	if err != nil || !strings.Contains(stored, fmt.Sprintf(`"row":%d`, rows)) {
		t.Errorf("the cursor is %s, %v", stored, err)
	}
}

// TestRowsAreAcceptedTogether checks that the rows of a page are accepted in their order, and
// that none waits for the commit of the one before.
func TestRowsAreAcceptedTogether(t *testing.T) {
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	n.stop()
	const rows = 50
	var want []string
	var all sync.WaitGroup
	all.Add(rows)
	n.inbox.commit = func() {
		all.Done()
		all.Wait()
	}
	for i := range rows {
		n.hears(fmt.Sprint(i))
		want = append(want, fmt.Sprint(i, " by backfill"))
	}
	n.start()
	if diff := cmp.Diff(want, n.inbox.await(t, rows)); diff != "" {
		t.Error(diff)
	}
	for _, e := range n.inbox.taken {
		if e.Batch == nil || e.Batch != n.inbox.taken[0].Batch {
			t.Fatal("the rows are no batch: a later one may overtake one that is not stored")
		}
	}
}

// TestTheCursorMovesOverCommittedRows checks that a row that the store refused is read again.
func TestTheCursorMovesOverCommittedRows(t *testing.T) {
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	n.stop()
	n.inbox.busy = 1
	for _, text := range []string{"one", "two", "three"} {
		n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: text, CreatedAt: time.Now().Add(-48 * time.Hour)})
	}
	n.start()
	if diff := cmp.Diff([]string{"one by backfill", "two by backfill", "three by backfill"}, n.inbox.await(t, 3)); diff != "" {
		t.Error(diff)
	}
}

// TestAGapIsReadFirst checks that a webhook behind lost ones brings them along, in their order,
// before its own envelope, and that reordered webhooks change nothing.
func TestAGapIsReadFirst(t *testing.T) {
	lost := map[int]bool{1: true, 2: true}
	calls := 0
	n := newNode(t, bluebubblestest.Options{Webhooks: func(string) []time.Duration {
		if calls++; lost[calls-1] {
			return nil
		}
		return []time.Duration{0}
	}}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	for _, text := range []string{"one", "two", "three", "four"} {
		m, sent := n.Say(bluebubblestest.Message{Chat: direct, From: nora, Text: text})
		if !lost[int(m.ROWID)-1] {
			if status, err := sent.Wait(t.Context()); status != http.StatusOK || err != nil {
				t.Errorf("%s: status %d, %v", text, status, err)
			}
		}
	}
	want := []string{"one by webhook", "two by backfill", "three by backfill", "four by backfill"}
	if diff := cmp.Diff(want, n.inbox.await(t, 4)); diff != "" {
		t.Error(diff)
	}
}

// TestARefusedWebhookIsRead checks that a message whose webhook the store refused comes with
// the next poll.
func TestARefusedWebhookIsRead(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = 50 * time.Millisecond })
	n.start()
	n.inbox.mu.Lock()
	n.inbox.busy = 1
	n.inbox.mu.Unlock()
	_, sent := n.Say(bluebubblestest.Message{Chat: direct, From: nora, Text: "hi"})
	if status, err := sent.Wait(t.Context()); err != nil || status != http.StatusServiceUnavailable && status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
	if got := n.inbox.await(t, 1); !strings.HasPrefix(got[0], "hi by ") {
		t.Errorf("got %q", got)
	}
}

// TestARefusedWebhookComesBeforeTheNext checks that a message whose webhook the store refused is
// read before the next message.
func TestARefusedWebhookComesBeforeTheNext(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	n.inbox.mu.Lock()
	n.inbox.busy = 1
	n.inbox.mu.Unlock()
	for _, text := range []string{"one", "two"} {
		_, sent := n.Say(bluebubblestest.Message{Chat: direct, From: nora, Text: text})
		if _, err := sent.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"one by backfill", "two by backfill"}, n.inbox.await(t, 2)); diff != "" {
		t.Error(diff)
	}
}

// TestWebhooksInFlight checks that a webhook in its order reads nothing while the one before
// waits for its commit.
func TestWebhooksInFlight(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	committed := make(chan struct{})
	n.inbox.commit = func() { <-committed }
	before := n.queries.Load()
	for i, text := range []string{"one", "two"} {
		n.Say(bluebubblestest.Message{Chat: direct, From: nora, Text: text})
		n.inbox.await(t, i+1)
	}
	close(committed)
	if diff := cmp.Diff([]string{"one by webhook", "two by webhook"}, n.inbox.await(t, 2)); diff != "" || n.queries.Load() != before {
		t.Errorf("%d queries: %s", n.queries.Load()-before, diff)
	}
}

// TestAWebhookNeedsNoServer checks that a webhook behind a gap is accepted also while the
// server's API does not answer.
func TestAWebhookNeedsNoServer(t *testing.T) {
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	n.hears("lost")
	m := n.hears("arrived")
	n.SetAway(true)
	body := fmt.Sprintf(`{"type":"new-message","data":{"originalROWID":%d,"guid":%q,"text":"arrived","handle":{"address":%q},"chats":[{"guid":%q,"style":45}]}}`, m.ROWID, m.GUID, nora, direct)
	if status := post(t, n.hook.URL+"/"+canaryWebhook, body); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if diff := cmp.Diff([]string{"arrived by webhook"}, n.inbox.await(t, 1)); diff != "" {
		t.Error(diff)
	}
}

// TestAnUnknownUpdateIsAskedFor checks that the chat of an update of an unknown message comes
// from the server, unless the message is old.
func TestAnUnknownUpdateIsAskedFor(t *testing.T) {
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	old := n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: "old", CreatedAt: time.Now().Add(-7 * 24 * time.Hour)})
	m := n.hears("hello")
	n.start()
	for _, row := range []bluebubblestest.Message{old, m} {
		body := fmt.Sprintf(`{"type":"updated-message","data":{"originalROWID":%d,"guid":%q,"text":"changed","dateCreated":%d,"handle":{"address":%q}}}`,
			row.ROWID, row.GUID, row.CreatedAt.UnixMilli(), nora)
		if status := post(t, n.hook.URL+"/"+canaryWebhook, body); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	want := []string{"changed by webhook", "changed by webhook", "hello by backfill"}
	if diff := cmp.Diff(want, n.inbox.await(t, 3)); diff != "" {
		t.Error(diff)
	}
}

// TestALateFileIsReadWithItsChat checks that a file that comes after its message also comes with the
// chat, because a message without content is a question only now.
func TestALateFileIsReadWithItsChat(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	m, sent := n.Say(bluebubblestest.Message{Chat: direct, From: nora})
	if _, err := sent.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Change(m.GUID, func(m *bluebubblestest.Message) {
		m.Attachments = []bluebubblestest.Attachment{{GUID: "at_1", Name: "a.png"}}
	})
	if diff := cmp.Diff([]string{" by webhook", " by webhook", " by backfill"}, n.inbox.await(t, 3)); diff != "" {
		t.Error(diff)
	}
}

// TestALateWebhookUndoesNoChange checks that a webhook which the server sent before a change of its
// message is dropped if a later state arrived first, also if that state is that the message is
// unsent. A change of an unknown message drops nothing.
func TestALateWebhookUndoesNoChange(t *testing.T) {
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	n.stop()
	original := func(m bluebubblestest.Message, edited time.Time) string {
		body := map[string]any{"originalROWID": m.ROWID, "guid": m.GUID, "text": "original", "handle": map[string]any{"address": nora}, "dateCreated": m.CreatedAt.UnixMilli()}
		kind := "new-message"
		if edited.IsZero() {
			body["chats"] = []any{map[string]any{"guid": direct, "style": 45}}
		} else {
			kind, body["dateEdited"], body["text"] = "updated-message", edited.UnixMilli(), "changed"
		}
		raw, err := json.Marshal(map[string]any{"type": kind, "data": body})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	changed, unsent := n.hears("original"), n.hears("original")
	n.Edit(changed.GUID, "at seven")
	n.Unsend(unsent.GUID)
	n.start()
	n.inbox.await(t, 2)
	unknown := bluebubblestest.Message{ROWID: unsent.ROWID + 1, GUID: "5D1E0C2A-7B1F-4E55-9A60-0000000000FF", CreatedAt: time.Now()}
	for _, body := range []string{original(changed, time.Time{}), original(unsent, time.Time{}), original(unknown, time.Now()), original(unknown, time.Time{})} {
		if status := post(t, n.hook.URL+"/"+canaryWebhook, body); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	want := []string{"at seven by backfill", "delete by backfill", "changed by webhook", "original by webhook"}
	if diff := cmp.Diff(want, n.inbox.await(t, 4)); diff != "" {
		t.Error(diff)
	}
}

// TestWeekOldWebhooksReadNothing checks that repeated webhooks of known rows, and an old one behind
// a gap, make no calls.
func TestWeekOldWebhooksReadNothing(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	for i := range 20 {
		_, sent := n.Say(bluebubblestest.Message{Chat: direct, From: nora, Text: fmt.Sprint(i)})
		if _, err := sent.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := n.queries.Load()
	old := fmt.Sprintf(`{"type":"new-message","data":{"originalROWID":900,"guid":"old","text":"old","dateCreated":%d,"chats":[{"guid":%q}]}}`,
		time.Now().Add(-7*24*time.Hour).UnixMilli(), direct)
	if status := post(t, n.hook.URL+"/hooks/bluebubbles/home/"+canaryWebhook, old); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	for _, d := range n.Replay() {
		if status, err := d.Wait(t.Context()); status != http.StatusOK || err != nil {
			t.Fatalf("status %d, %v", status, err)
		}
	}
	if got := n.inbox.await(t, 21); len(got) != 21 || n.queries.Load() != before {
		t.Errorf("%d envelopes, %d queries", len(got), n.queries.Load()-before)
	}
}

// post posts a body and returns the status.
func post(t *testing.T, url, body string) int {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// TestHookSecret checks that only the whole secret opens the hook, before the body is read, and
// that a large body is refused.
func TestHookSecret(t *testing.T) {
	n := newNode(t, silent)
	n.start()
	for path, want := range map[string]int{
		"": 401, "/wrong": 401, "/" + canaryWebhook[:20]: 401, "/" + canaryWebhook + "x": 401, "/" + canaryWebhook: 200,
	} {
		if status := post(t, n.hook.URL+path, `{"type":"hello-world","data":null}`); status != want {
			t.Errorf("%q: status %d, want %d", path, status, want)
		}
	}
	if status := post(t, n.hook.URL+"/"+canaryWebhook, strings.Repeat(" ", 1<<20+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: status %d", status)
	}
	if status := post(t, n.hook.URL+"/wrong", strings.Repeat(" ", 1<<20+1)); status != http.StatusUnauthorized {
		t.Errorf("a large body with a wrong secret: status %d", status)
	}
}

// TestTheServerIsAway checks that the poller reports the failure and reads afterwards.
func TestTheServerIsAway(t *testing.T) {
	n := newNode(t, silent, quickly)
	n.start()
	n.SetAway(true)
	<-n.downs
	n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: "meanwhile"})
	n.SetAway(false)
	<-n.ups
	if diff := cmp.Diff([]string{"meanwhile by backfill"}, n.inbox.await(t, 1)); diff != "" {
		t.Error(diff)
	}
	if text := n.log.String(); strings.Contains(text, canary) || strings.Contains(text, canaryQuery) {
		t.Errorf("the log contains the password:\n%s", text)
	}
}
