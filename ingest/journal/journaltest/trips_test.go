package journaltest_test

import (
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
)

// TestTripsOfAMessage proves that a message in a new thread takes at most five round trips to a server: two for its
// accept, which records it, two for the end of its run, and one for the mark of its delivery. The first of two
// shows whether the transaction may be committed.
func TestTripsOfAMessage(t *testing.T) {
	var counted commits
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.Schema(t, postgrestest.URL(t)), Recorder: &counted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	j := journal.New(engine, journal.Options{Node: "a", Lease: time.Minute})
	if _, err := j.Threads.ThreadID(t.Context(), "slack:acme:C1:0"); err != nil { // the first one makes the store's secret
		t.Fatal(err)
	}
	step := func(name string, most int64, err error) {
		t.Helper()
		trips := counted.trips.Swap(0)
		if t.Logf("%s: %d round trips", name, trips); err != nil || trips > most {
			t.Errorf("%s: %d round trips, %v", name, trips, err)
		}
	}
	counted.trips.Store(0)
	message := &event.Message{
		ExternalID: "C1/1", Content: "hello", Channel: event.Channel{ID: "C1"}, SentAt: time.Now(),
		Metadata: event.Metadata{Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human},
	}
	var run *runs.Run
	accepted, err := j.Recorder.AcceptEntry(t.Context(), envelopes.AcceptRequest{
		Claim: true, Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", Body: []byte("{}")},
		Keys: event.Keys{Kind: event.KindMessage, Dedupe: "message:C1/1", AltKey: "app_mention:C1/1", Thread: "slack:acme:C1:1", Channel: message.Channel, MessageID: "C1/1"},
	}, record.Entry{
		Workspace: "acme", Event: event.Event{Kind: event.KindMessage, Message: message}, Origin: messages.Live, Agent: "helper", Begin: true,
		Decide: func(m *event.Message, _ record.Look) record.Decision {
			return record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonMention, Metadata: m.Metadata.Bytes()}
		},
	}, func(_ envelopes.AcceptResult, r record.Result) { run = r.Begun })
	step("accept", 2, err)
	if run == nil {
		t.Fatal("no run began with the message")
	}
	ended, err := j.Runs.CommitReply(t.Context(), &accepted.Claim, run, runs.Reply{
		Content: "Hello.", Stale: "send", Attempt: runs.Attempt{BegunAt: time.Now()}, Posts: []outbox.Post{{Channel: "C1", Place: "1", Text: "Hello."}}, Send: &outbox.Send{Timeout: time.Second},
		Metadata: func(string, time.Duration) []byte { return []byte("{}") },
	})
	step("end", 2, err)
	if ended.Begun == nil {
		t.Fatal("the delivery did not begin with the reply")
	}
	_, err = j.Outbox.Sent(t.Context(), ended.Begun, "C1/2")
	step("sent", 1, err)
}
