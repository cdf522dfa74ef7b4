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
	"parley/ingest/journal/places"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
)

// BenchmarkMessage measures the four transactions of a message in a new thread, with its
// answer and 64 concurrent threads. cpu-ns/op is the CPU time of the process, which a busy
// machine changes less than the time.
func BenchmarkMessage(b *testing.B) {
	engine, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "parley.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	j := journal.New(engine, journal.Options{Node: "a"})
	body, text := []byte(`{"event":"`+strings.Repeat("x", 1600)+`"}`), strings.Repeat("hello ", 20)
	var next atomic.Int64
	begun := cpuTime(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			id := fmt.Sprintf("C1/%d", next.Add(1))
			accepted, err := j.Accept(b.Context(), envelopes.AcceptRequest{Claim: true,
				Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", Body: body},
				Keys:     event.Keys{Kind: event.KindMessage, Dedupe: "message:" + id, Thread: event.ThreadKey("slack:acme:" + id), Channel: event.Channel{ID: "C1"}, MessageID: id},
			})
			if err != nil {
				b.Fatal(err)
			}
			claim := &places.Claim{Thread: accepted.Thread, Fence: accepted.Fence, Key: accepted.Key}
			message := &event.Message{
				ExternalID: id, Content: text, Channel: event.Channel{ID: "C1"}, SentAt: time.Now(),
				Metadata: event.Metadata{Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human},
			}
			metadata := message.Metadata.Bytes()
			result, err := j.Record(b.Context(), claim, record.Entry{
				Envelope: accepted.ID, MessageUUID: accepted.MessageUUID, Workspace: "acme", Event: event.Event{Kind: event.KindMessage, Message: message}, Origin: messages.Live, Agent: "helper", Begin: true,
				Decide: func(m *event.Message, _ record.Look) record.Decision {
					return record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonMention, Metadata: metadata}
				},
			})
			if err != nil || result.Begun == nil {
				b.Fatal(err, result.Begun)
			}
			ended, err := j.CommitReply(b.Context(), claim, result.Begun, runs.Reply{
				Content: text, Stale: "send", Posts: []outbox.Post{{Channel: "C1", Place: id, Text: text}}, Send: &outbox.Send{Timeout: time.Minute},
				Metadata: func(string, time.Duration) []byte { return metadata },
			})
			if err != nil || ended.Begun == nil {
				b.Fatal(err, ended.Begun)
			}
			if _, err := j.Sent(b.Context(), ended.Begun, id+"/reply"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(cpuTime(b)-begun)/float64(b.N), "cpu-ns/op")
}

// cpuTime returns the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
