// Package bluebubbles has the scenario that plays a BlueBubbles server.
package bluebubbles

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// IMessage plays a BlueBubbles server with its traps: webhooks that are lost, doubled,
// reordered and a week old, a server that is away, sends that take effect without an answer, and
// kills during sends.
type IMessage struct {
	messages, chats, old, unclear, kills int
	rate, lost, doubled                  float64
	away, after, drain                   time.Duration

	*trial.Trial
	server *bluebubblestest.Server
	people []*ledger.Conversation // one chat with each

	mu    sync.Mutex
	hooks *rand.Rand // the draws for webhooks

	clean  atomic.Bool // every webhook is sent once and at once
	hangs  atomic.Bool // sends take effect and have no answer, or an error
	sends  atomic.Int64
	called wake.Signal // set by a send
}

func (m *IMessage) Define(f *rig.FlagSet) {
	f.Number(&m.messages, "messages", 1000, 1, "number of messages with faulty webhooks")
	f.Number(&m.chats, "chats", 20, 1, "number of chats")
	f.Float(&m.rate, "rate", 40, 0.001, "messages per second")
	f.Float(&m.lost, "lost", 0.3, 0, "share of the webhooks that are lost")
	f.Float(&m.doubled, "doubled", 0.3, 0, "share of the webhooks that are doubled")
	f.Duration(&m.away, "away", 20*time.Second, 0, "time for which the server is away")
	f.Number(&m.old, "old", 10_000, 0, "number of week-old webhooks after a restart")
	f.Number(&m.unclear, "unclear", 500, 0, "number of sends that take effect and then time out or fail")
	f.Number(&m.kills, "kills", 50, 0, "number of kills during sends")
	f.Duration(&m.after, "after", 2*time.Second, 1, "longest time between a start and the send that the next kill interrupts")
	f.Duration(&m.drain, "drain", 5*time.Minute, 0, "time limit until all work is done")
}

// directChat begins the guid of a chat with one person.
const directChat = "iMessage;-;"

// macHook is the secret of the daemon's hook.
const macHook = "bench-webhook-secret-0123456789"

// unclearTimeout is the daemon's limit of a call.
const unclearTimeout = time.Second

func (m *IMessage) Run(ctx context.Context, b *rig.Bench) (err error) {
	m.Trial = &trial.Trial{Bench: b, Ledger: ledger.New(), Posts: m.sent}
	m.Ledger.Mention = "" // each chat is with one person
	m.hooks, m.called = b.Draws(1), wake.NewSignal()
	for n := range m.chats {
		m.people = append(m.people, &ledger.Conversation{Place: ledger.Place{Channel: fmt.Sprintf("%s+1555555%04d", directChat, n)}})
	}
	m.server, err = bluebubblestest.Start(bluebubblestest.Options{PrivateAPI: true, Webhooks: m.webhooks, Plan: m.plan})
	if err != nil {
		return err
	}
	b.OnClose(m.server.Close)
	if m.Nodes, err = b.StartNodes(ctx, "parley", m.newDaemon); err != nil {
		return err
	}
	if err := rig.Await(ctx, func() bool { return len(m.server.Registered()) > 0 }); err != nil {
		return fmt.Errorf("the daemon has not registered its webhook: %w\n%s", err, m.Nodes.LogTail())
	}
	for _, phase := range []func(context.Context) error{m.faultyWebhooks, m.weekOld, m.unclearSends, m.killsDuringSends} {
		if err := phase(ctx); err != nil {
			return fmt.Errorf("%w\n%s", err, m.Nodes.LogTail())
		}
		m.settle(ctx)
	}
	if err := errors.Join(m.compare(ctx), m.ReportMissed(ctx)); err != nil {
		return err
	}
	return m.Finish()
}

// newDaemon prepares a daemon with its configuration.
func (m *IMessage) newDaemon(name string, d *rig.Database) (*rig.Child, error) {
	return m.Bench.NewDaemon(name, d, "", fmt.Sprintf(`id: bench
platform: bluebubbles
agent: echo
bluebubbles: {url: %q, password: %s, webhook_secret: %s, poll: 2s, post_rate: 0, timeout: %v}
turns: {coalesce: 0s, coalesce_max: 0s}
`, m.server.URL(), bluebubblestest.Password, macHook, unclearTimeout))
}

// webhooks returns the delays of an event's webhooks.
func (m *IMessage) webhooks(string) (delays []time.Duration) {
	if m.clean.Load() {
		return []time.Duration{0}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delay := func() time.Duration { return time.Duration(m.hooks.Int64N(int64(200 * time.Millisecond))) }
	if m.hooks.Float64() < m.lost {
		return nil
	}
	if delays = append(delays, delay()); m.hooks.Float64() < m.doubled {
		delays = append(delays, delay())
	}
	return delays
}

// plan returns the fault of a call, and reports sends.
func (m *IMessage) plan(call bluebubblestest.Call) bluebubblestest.Fault {
	if call.Route != "POST message/text" {
		return bluebubblestest.Fault{}
	}
	m.called.Set()
	switch n := m.sends.Add(1); {
	case !m.hangs.Load():
		return bluebubblestest.Fault{}
	case n%2 == 0:
		return bluebubblestest.Fault{Effect: true, Status: http.StatusInternalServerError}
	}
	return bluebubblestest.Fault{Effect: true, Hold: make(chan struct{})}
}

// say lets a person ask a question in one of the chats, in turn.
func (m *IMessage) say() {
	asked := m.Ledger.Add(m.people[m.Ledger.Count()%m.chats], ledger.Message{OnSlack: true})
	chat := asked.Place.Channel
	row, _ := m.server.Say(bluebubblestest.Message{Chat: chat, From: strings.TrimPrefix(chat, directChat), Text: asked.Text(0)})
	asked.TS = row.GUID
}

// sent returns the daemon's messages.
func (m *IMessage) sent() (all []slacktest.Post) {
	for _, sent := range m.server.Sent() {
		all = append(all, slacktest.Post{Channel: sent.Chat, TS: sent.GUID, Text: sent.Text})
	}
	return all
}

// faultyWebhooks asks questions whose webhooks are lost, doubled and reordered. The server is
// away in the middle, and people go on.
func (m *IMessage) faultyWebhooks(ctx context.Context) error {
	begun := time.Now()
	trial.Pump(ctx, m.rate, m.messages/2, nil, m.say)
	m.server.SetAway(true)
	var group sync.WaitGroup
	group.Go(func() { trial.Pump(ctx, m.rate, m.messages-m.messages/2, nil, m.say) })
	wake.After(ctx, m.away)
	m.server.SetAway(false)
	group.Wait()
	m.Printf("%d messages, %v away: %v\n", m.messages, m.away, figure.Round(begun))
	return ctx.Err()
}

// weekOld restarts the daemon and then repeats old webhooks.
func (m *IMessage) weekOld(ctx context.Context) error {
	m.clean.Store(true)
	if err := m.Nodes.Stop(); err != nil {
		return err
	}
	before := m.sends.Load()
	var deliveries []bluebubblestest.Delivery
	for n := range m.old {
		person := fmt.Sprintf("+1555556%04d", n%m.chats)
		m.server.Put(bluebubblestest.Message{Chat: directChat + person, From: person, Text: fmt.Sprint("old ", n), CreatedAt: time.Now().Add(-7 * 24 * time.Hour)})
	}
	if err := m.Nodes.Start(ctx); err != nil {
		return err
	}
	begun := time.Now()
	for _, row := range m.server.Messages() {
		if strings.HasPrefix(row.Text, "old ") {
			deliveries = append(deliveries, m.server.Repeat(row.GUID))
		}
	}
	for _, d := range deliveries {
		if _, err := d.Wait(ctx); err != nil {
			return err
		}
	}
	m.settle(ctx)
	replies := m.sends.Load() - before
	m.Printf("%d week-old webhooks after a restart: %d replies, done after %v\n", m.old, replies, figure.Round(begun))
	if replies > 0 {
		m.Faults = append(m.Faults, "old messages were answered")
	}
	return nil
}

// unclearSends asks questions whose answers arrive although their sends fail.
func (m *IMessage) unclearSends(ctx context.Context) error {
	begun := time.Now()
	m.hangs.Store(true)
	defer m.hangs.Store(false)
	trial.Pump(ctx, m.rate, m.unclear, nil, m.say)
	m.settle(ctx)
	m.Printf("%d sends without an answer: %v\n", m.unclear, figure.Round(begun))
	return ctx.Err()
}

// killsDuringSends kills the daemon while it sends. Each process lives for a while, so that it can
// go on: a process that always ends at its first send makes dead letters.
func (m *IMessage) killsDuringSends(ctx context.Context) error {
	begun := time.Now()
	err := trial.During(func(stop <-chan struct{}) { trial.Pump(ctx, m.rate, trial.Endless, stop, m.say) }, func() error {
		return trial.Repeat(ctx, m.Random, m.kills, m.after, func() error {
			m.called.Clear() // an older call
			select {
			case <-m.called:
			case <-ctx.Done():
				return ctx.Err()
			}
			wake.After(ctx, time.Duration(m.Random.Int64N(int64(5*time.Millisecond))))
			return m.Nodes.CrashOne(ctx, m.Random)
		})
	})
	m.Printf("%d kills during sends: %v\n", m.kills, figure.Round(begun))
	return err
}

// settle waits until every question has an answer and the daemon has no unfinished work.
func (m *IMessage) settle(ctx context.Context) {
	m.Faults = append(m.Faults, m.Trial.Settle(ctx, m.Ledger.Due(), true, m.drain))
}

// compare compares the journal with the questions.
func (m *IMessage) compare(ctx context.Context) error {
	found, err := m.Journal(ctx, "true", "sent_at, seq")
	m.Printf("the journal: %d of %d questions lost, %d out of order, %d echoes\n", found.Lost, m.Ledger.Count(), found.Disordered, found.Echoes)
	if found.Lost+found.Disordered+found.Echoes > 0 {
		m.Faults = append(m.Faults, "the journal differs from the questions")
	}
	return err
}
