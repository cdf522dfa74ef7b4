package live_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
)

// TestFirstStartReplaysNoHistory checks that a new workspace begins behind the server's rows,
// and that the window for changes does not return them either.
func TestFirstStartReplaysNoHistory(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, testapp.Quickly)
	for i := range 3 {
		n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: fmt.Sprint("old ", i), CreatedAt: time.Now().Add(-time.Second)})
	}
	n.Start()
	n.Hears("new")
	if diff := cmp.Diff([]string{"new by backfill"}, n.Inbox.Await(t, 1)); diff != "" {
		t.Error(diff)
	}
	n.Stop()
	n.Start() // the next start does not read the window of before the first start
	n.Hears("newer")
	if diff := cmp.Diff([]string{"new by backfill", "newer by backfill"}, n.Inbox.Await(t, 2)); diff != "" {
		t.Error(diff)
	}
}

// TestOldRowsWithNewNumbers checks that rows from before the first start, or older than missed messages
// may be, are not handed over, although their numbers are new.
func TestOldRowsWithNewNumbers(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, testapp.Quickly)
	n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "the newest", CreatedAt: time.Now().Add(-time.Minute)})
	n.Start()
	n.Stop()
	n.Wants.MissedAge = 24 * time.Hour
	for _, age := range []time.Duration{3 * 365 * 24 * time.Hour, 2 * time.Minute} {
		n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "restored", CreatedAt: time.Now().Add(-age)})
	}
	n.Hears("new")
	n.Start()
	if diff := cmp.Diff([]string{"new by backfill"}, n.Inbox.Await(t, 1)); diff != "" {
		t.Error(diff)
	}
	n.Stop()
	if err := n.State.Put(t.Context(), "cursor", `{"row":1,"date":1,"from":1}`); err != nil {
		t.Fatal(err)
	}
	n.Hears("newer")
	n.Start()
	if diff := cmp.Diff([]string{"restored by backfill", "newer by backfill", "the newest by backfill"}, n.Inbox.Await(t, 4)[1:]); diff != "" {
		t.Errorf("a start a long time ago: %s", diff)
	}
}

// TestMissedMessagesOfAChatAreBounded checks that only the newest missed messages of each chat are handed
// over. A message of the last millisecond before the first start would be one from before it.
func TestMissedMessagesOfAChatAreBounded(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, testapp.Quickly)
	first := n.Hears("first")
	n.Start()
	n.Stop()
	n.Wants.MissedMessages = 3
	n.Put(bluebubblestest.Message{Chat: "iMessage;-;sam@example.org", From: "sam@example.org", Text: "elsewhere", CreatedAt: first.CreatedAt.Add(time.Millisecond)})
	for i := range 250 {
		n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: fmt.Sprint(i), CreatedAt: time.Now().Add(time.Duration(i) * time.Millisecond)})
	}
	n.Start()
	if diff := cmp.Diff([]string{"elsewhere by backfill", "247 by backfill", "248 by backfill", "249 by backfill"}, n.Inbox.Await(t, 4)); diff != "" {
		t.Error(diff)
	}
}

// TestARenumberedServer checks that a server whose numbers are smaller than the cursor is read from the
// cursor's date on, and that its numbers are then the cursor's.
func TestARenumberedServer(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	date := time.Now().Add(-time.Minute)
	if err := n.State.Put(t.Context(), "cursor", fmt.Sprintf(`{"row":9000,"date":%d,"from":1}`, date.UnixMilli())); err != nil {
		t.Fatal(err)
	}
	n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "known", CreatedAt: date.Add(-time.Hour)})
	n.Hears("missed")
	n.Start()
	if diff := cmp.Diff([]string{"missed by backfill"}, n.Inbox.Await(t, 1)); diff != "" {
		t.Error(diff)
	}
	n.Stop()
	stored, err := n.State.Get(t.Context(), "cursor")
	if err != nil || !strings.HasPrefix(stored, `{"row":2,`) || !strings.HasSuffix(stored, `,"from":1}`) {
		t.Errorf("the cursor is %s, %v", stored, err)
	}
	n.Hears("next")
	n.Start()
	if diff := cmp.Diff([]string{"missed by backfill", "next by backfill"}, n.Inbox.Await(t, 2)); diff != "" {
		t.Error(diff)
	}
}

// TestPollFindsWhatWebhooksMissed checks messages, edits, unsends, late attachments and
// tapbacks that no webhook reported, also those from while we were away.
func TestPollFindsWhatWebhooksMissed(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, testapp.Quickly)
	n.Start()
	old := n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "old", CreatedAt: time.Now().Add(-15 * time.Minute)})
	edited, unsent, late := n.Hears("edited"), n.Hears("unsent"), n.Hears("late")
	n.Inbox.Await(t, 4)
	n.Stop()
	n.Edit(old.GUID, "old, indeed")
	n.Edit(edited.GUID, "edited, indeed")
	n.Unsend(unsent.GUID)
	n.Arrive(late.GUID, bluebubblestest.Attachment{GUID: "at_1", Name: "late.txt"})
	n.React(edited.GUID, testapp.Nora, "love")
	n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "synced late", CreatedAt: time.Now().Add(-48 * time.Hour)})
	n.Start()
	got := map[string]bool{}
	for _, text := range n.Inbox.Await(t, 10)[4:] {
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
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	n.Stop()
	n.Put(bluebubblestest.Message{Chat: "SMS;-;" + testapp.Nora, From: testapp.Nora, Text: "early", CreatedAt: time.Now().Add(5 * time.Hour)})
	n.Start()
	n.Stop()
	question := n.Hears("a question")
	n.Start()
	n.Stop()
	n.Reply(testapp.Nora, question.GUID, "yes")
	if sent := n.Sent(); sent[0].Chat != testapp.Direct {
		t.Errorf("the answer went to %s", sent[0].Chat)
	}
	n.Edit(question.GUID, "another question")
	n.Start()
	want := []string{"early by backfill", "a question by backfill", "yes by backfill", "another question by backfill"}
	if diff := cmp.Diff(want, n.Inbox.Await(t, 4)); diff != "" {
		t.Error(diff)
	}
}

// TestPollReadsAllPages checks a backlog of several pages whose rows are not in the order of
// their dates, while the server fails now and then.
func TestPollReadsAllPages(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, testapp.Quickly)
	n.Start()
	n.Stop()
	const rows = 1000
	for i := range rows {
		n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: fmt.Sprint(i), CreatedAt: time.Now().Add(-time.Duration(i*7919%rows) * time.Second)})
	}
	for range 3 {
		n.Script("POST message/query", bluebubblestest.Fault{}, bluebubblestest.Fault{}, bluebubblestest.Fault{Status: http.StatusInternalServerError})
	}
	n.Start()
	n.Inbox.Await(t, rows)
	stored, err := n.State.Get(t.Context(), "cursor")
	if err != nil || !strings.Contains(stored, fmt.Sprintf(`"row":%d`, rows)) {
		t.Errorf("the cursor is %s, %v", stored, err)
	}
}

// TestRowsAreAcceptedTogether checks that the rows of a page are accepted in their order, and
// that none waits for the commit of the one before.
func TestRowsAreAcceptedTogether(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	n.Stop()
	const rows = 50
	var want []string
	var all sync.WaitGroup
	all.Add(rows)
	n.Inbox.Commit = func() {
		all.Done()
		all.Wait()
	}
	for i := range rows {
		n.Hears(fmt.Sprint(i))
		want = append(want, fmt.Sprint(i, " by backfill"))
	}
	n.Start()
	if diff := cmp.Diff(want, n.Inbox.Await(t, rows)); diff != "" {
		t.Error(diff)
	}
	for _, e := range n.Inbox.Taken {
		if e.Batch == nil || e.Batch != n.Inbox.Taken[0].Batch {
			t.Fatal("the rows are no batch: a later one may overtake one that is not stored")
		}
	}
}

// TestTheCursorMovesOverCommittedRows checks that a row that the store refused is read again.
func TestTheCursorMovesOverCommittedRows(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	n.Stop()
	n.Inbox.Refuse()
	for _, text := range []string{"one", "two", "three"} {
		n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: text, CreatedAt: time.Now().Add(-48 * time.Hour)})
	}
	n.Start()
	if diff := cmp.Diff([]string{"one by backfill", "two by backfill", "three by backfill"}, n.Inbox.Await(t, 3)); diff != "" {
		t.Error(diff)
	}
}

// TestAGapIsReadFirst checks that a webhook behind lost ones brings them along, in their order,
// before its own envelope, and that reordered webhooks change nothing.
func TestAGapIsReadFirst(t *testing.T) {
	lost := map[int]bool{1: true, 2: true}
	calls := 0
	n := testapp.NewNode(t, bluebubblestest.Options{Webhooks: func(string) []time.Duration {
		if calls++; lost[calls-1] {
			return nil
		}
		return []time.Duration{0}
	}}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	for _, text := range []string{"one", "two", "three", "four"} {
		m, sent := n.Say(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: text})
		if !lost[int(m.ROWID)-1] {
			if status, err := sent.Wait(t.Context()); status != http.StatusOK || err != nil {
				t.Errorf("%s: status %d, %v", text, status, err)
			}
		}
	}
	want := []string{"one by webhook", "two by backfill", "three by backfill", "four by backfill"}
	if diff := cmp.Diff(want, n.Inbox.Await(t, 4)); diff != "" {
		t.Error(diff)
	}
}

// TestARefusedWebhookIsRead checks that a message whose webhook the store refused comes with
// the next poll.
func TestARefusedWebhookIsRead(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = 50 * time.Millisecond })
	n.Start()
	n.Inbox.Refuse()
	_, sent := n.Say(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "hi"})
	if status, err := sent.Wait(t.Context()); err != nil || status != http.StatusServiceUnavailable && status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
	if got := n.Inbox.Await(t, 1); !strings.HasPrefix(got[0], "hi by ") {
		t.Errorf("got %q", got)
	}
}

// TestARefusedWebhookComesBeforeTheNext checks that a message whose webhook the store refused is
// read before the next message.
func TestARefusedWebhookComesBeforeTheNext(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	n.Inbox.Refuse()
	for _, text := range []string{"one", "two"} {
		_, sent := n.Say(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: text})
		if _, err := sent.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"one by backfill", "two by backfill"}, n.Inbox.Await(t, 2)); diff != "" {
		t.Error(diff)
	}
}

// TestWebhooksInFlight checks that a webhook in its order reads nothing while the one before
// waits for its commit.
func TestWebhooksInFlight(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	committed := make(chan struct{})
	n.Inbox.Commit = func() { <-committed }
	before := n.Queries.Load()
	for i, text := range []string{"one", "two"} {
		n.Say(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: text})
		n.Inbox.Await(t, i+1)
	}
	close(committed)
	if diff := cmp.Diff([]string{"one by webhook", "two by webhook"}, n.Inbox.Await(t, 2)); diff != "" || n.Queries.Load() != before {
		t.Errorf("%d queries: %s", n.Queries.Load()-before, diff)
	}
}

// TestAWebhookNeedsNoServer checks that a webhook behind a gap is accepted also while the
// server's API does not answer.
func TestAWebhookNeedsNoServer(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	n.Hears("lost")
	m := n.Hears("arrived")
	n.SetAway(true)
	body := fmt.Sprintf(`{"type":"new-message","data":{"originalROWID":%d,"guid":%q,"text":"arrived","handle":{"address":%q},"chats":[{"guid":%q,"style":45}]}}`, m.ROWID, m.GUID, testapp.Nora, testapp.Direct)
	if status := post(t, n.Hook.URL+"/"+testapp.CanaryWebhook, body); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if diff := cmp.Diff([]string{"arrived by webhook"}, n.Inbox.Await(t, 1)); diff != "" {
		t.Error(diff)
	}
}

// TestAnUnknownUpdateIsAskedFor checks that the chat of an update of an unknown message comes
// from the server, unless the message is old.
func TestAnUnknownUpdateIsAskedFor(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	old := n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "old", CreatedAt: time.Now().Add(-7 * 24 * time.Hour)})
	m := n.Hears("hello")
	n.Start()
	for _, row := range []bluebubblestest.Message{old, m} {
		body := fmt.Sprintf(`{"type":"updated-message","data":{"originalROWID":%d,"guid":%q,"text":"changed","dateCreated":%d,"handle":{"address":%q}}}`,
			row.ROWID, row.GUID, row.CreatedAt.UnixMilli(), testapp.Nora)
		if status := post(t, n.Hook.URL+"/"+testapp.CanaryWebhook, body); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	want := []string{"changed by webhook", "changed by webhook", "hello by backfill"}
	if diff := cmp.Diff(want, n.Inbox.Await(t, 3)); diff != "" {
		t.Error(diff)
	}
}

// TestALateFileIsReadWithItsChat checks that a file that comes after its message also comes with the
// chat, because a message without content is a question only now.
func TestALateFileIsReadWithItsChat(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	m, sent := n.Say(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora})
	if _, err := sent.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Change(m.GUID, func(m *bluebubblestest.Message) {
		m.Attachments = []bluebubblestest.Attachment{{GUID: "at_1", Name: "a.png"}}
	})
	if diff := cmp.Diff([]string{" by webhook", " by webhook", " by backfill"}, n.Inbox.Await(t, 3)); diff != "" {
		t.Error(diff)
	}
}

// TestALateWebhookUndoesNoChange checks that a webhook which the server sent before a change of its
// message is dropped if a later state arrived first, also if that state is that the message is
// unsent. A change of an unknown message drops nothing.
func TestALateWebhookUndoesNoChange(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	n.Stop()
	original := func(m bluebubblestest.Message, edited time.Time) string {
		body := map[string]any{"originalROWID": m.ROWID, "guid": m.GUID, "text": "original", "handle": map[string]any{"address": testapp.Nora}, "dateCreated": m.CreatedAt.UnixMilli()}
		kind := "new-message"
		if edited.IsZero() {
			body["chats"] = []any{map[string]any{"guid": testapp.Direct, "style": 45}}
		} else {
			kind, body["dateEdited"], body["text"] = "updated-message", edited.UnixMilli(), "changed"
		}
		raw, err := json.Marshal(map[string]any{"type": kind, "data": body})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	changed, unsent := n.Hears("original"), n.Hears("original")
	n.Edit(changed.GUID, "at seven")
	n.Unsend(unsent.GUID)
	n.Start()
	n.Inbox.Await(t, 2)
	unknown := bluebubblestest.Message{ROWID: unsent.ROWID + 1, GUID: "5D1E0C2A-7B1F-4E55-9A60-0000000000FF", CreatedAt: time.Now()}
	for _, body := range []string{original(changed, time.Time{}), original(unsent, time.Time{}), original(unknown, time.Now()), original(unknown, time.Time{})} {
		if status := post(t, n.Hook.URL+"/"+testapp.CanaryWebhook, body); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	want := []string{"at seven by backfill", "delete by backfill", "changed by webhook", "original by webhook"}
	if diff := cmp.Diff(want, n.Inbox.Await(t, 4)); diff != "" {
		t.Error(diff)
	}
}

// TestWeekOldWebhooksReadNothing checks that repeated webhooks of known rows, and an old one behind
// a gap, make no calls.
func TestWeekOldWebhooksReadNothing(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{}, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	for i := range 20 {
		_, sent := n.Say(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: fmt.Sprint(i)})
		if _, err := sent.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := n.Queries.Load()
	old := fmt.Sprintf(`{"type":"new-message","data":{"originalROWID":900,"guid":"old","text":"old","dateCreated":%d,"chats":[{"guid":%q}]}}`,
		time.Now().Add(-7*24*time.Hour).UnixMilli(), testapp.Direct)
	if status := post(t, n.Hook.URL+"/hooks/bluebubbles/home/"+testapp.CanaryWebhook, old); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	for _, d := range n.Replay() {
		if status, err := d.Wait(t.Context()); status != http.StatusOK || err != nil {
			t.Fatalf("status %d, %v", status, err)
		}
	}
	if got := n.Inbox.Await(t, 21); len(got) != 21 || n.Queries.Load() != before {
		t.Errorf("%d envelopes, %d queries", len(got), n.Queries.Load()-before)
	}
}

// TestTheServerIsAway checks that the poller reports the failure and reads afterwards.
func TestTheServerIsAway(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, testapp.Quickly)
	n.Start()
	n.SetAway(true)
	<-n.Downs
	n.Put(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "meanwhile"})
	n.SetAway(false)
	<-n.Ups
	if diff := cmp.Diff([]string{"meanwhile by backfill"}, n.Inbox.Await(t, 1)); diff != "" {
		t.Error(diff)
	}
	if text := n.Log.String(); strings.Contains(text, testapp.Canary) || strings.Contains(text, testapp.CanaryQuery) {
		t.Errorf("the log contains the password:\n%s", text)
	}
}
