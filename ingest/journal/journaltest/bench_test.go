package journaltest_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// commits counts the transactions of an engine, the calls that share them, and their pages and round trips.
type commits struct{ transactions, calls, pages, trips atomic.Int64 }

// Committed implements storage.Recorder.
func (c *commits) Committed(commit storage.Commit) {
	c.transactions.Add(1)
	c.calls.Add(int64(commit.Calls))
	c.pages.Add(int64(commit.Pages))
	c.trips.Add(int64(commit.Trips))
}

// BenchmarkMessage measures the writes of a message in a new thread, with its answer and 64
// concurrent threads: the accept, which records the message and begins its run, the end of the run, and the
// mark of its delivery. cpu-ns/op is the CPU time of the process, which a busy machine changes less than the
// time. commits/op counts the transactions, calls/op the calls that share them, and pages/op
// the pages of the log.
func BenchmarkMessage(b *testing.B) {
	var counted commits
	engine, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "parley.db"), sqlite.Options{Recorder: &counted})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	j := journal.New(engine, journal.Options{Node: "a", Remembered: journal.DefaultRemembered})
	body, text := []byte(`{"event":"`+strings.Repeat("x", 1600)+`"}`), strings.Repeat("hello ", 20)
	var next atomic.Int64
	begun := cpuTime(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			id := fmt.Sprintf("C1/%d", next.Add(1))
			message := &event.Message{
				ExternalID: id, Content: text, Channel: event.Channel{ID: "C1"}, SentAt: time.Now(),
				Metadata: event.Metadata{Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human},
			}
			metadata := message.Metadata.Bytes()
			var result record.Result
			accepted, err := j.Recorder.AcceptEntry(b.Context(), envelopes.AcceptRequest{Claim: true,
				Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", Body: body},
				Keys:     event.Keys{Kind: event.KindMessage, Dedupe: "message:" + id, Thread: event.ThreadKey("slack:acme:" + id), Channel: event.Channel{ID: "C1"}, MessageID: id},
			}, record.Entry{
				Workspace: "acme", Event: event.Event{Kind: event.KindMessage, Message: message}, Origin: messages.Live, Agent: "helper", Begin: true,
				Decide: func(m *event.Message, _ record.Look) record.Decision {
					return record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonMention, Metadata: metadata}
				},
			}, func(_ envelopes.AcceptResult, r record.Result) { result = r })
			if err != nil || result.Begun == nil {
				b.Fatal(err, result.Begun)
			}
			claim := &accepted.Claim
			ended, err := j.Runs.CommitReply(b.Context(), claim, result.Begun, runs.Reply{
				Content: text, Stale: "send", Posts: []outbox.Post{{Channel: "C1", Place: id, Text: text}}, Send: &outbox.Send{Timeout: time.Minute},
				Metadata: func(string, time.Duration) []byte { return metadata },
			})
			if err != nil || ended.Begun == nil {
				b.Fatal(err, ended.Begun)
			}
			if _, err := j.Outbox.Sent(b.Context(), ended.Begun, id+"/reply"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(cpuTime(b)-begun)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(counted.transactions.Load())/float64(b.N), "commits/op")
	b.ReportMetric(float64(counted.calls.Load())/float64(b.N), "calls/op")
	b.ReportMetric(float64(counted.pages.Load())/float64(b.N), "pages/op")
}

// cpuTime returns the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
