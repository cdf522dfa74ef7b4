// Package ledger records what was promised: the people's messages, their events and the requests to
// the model. At the end of a run it compares the replies on the platform with them.
package ledger

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
)

// Span is the time between the sending of an event and its acknowledgement. acked is
// zero if the event was never acknowledged.
type Span struct{ Sent, Acked time.Time }

// ackedBefore returns false for a nil span.
func (s *Span) ackedBefore(t time.Time) bool {
	return s != nil && !s.Acked.IsZero() && s.Acked.Before(t)
}

// Message is one message to the daemon. Only the goroutine that sends it writes to it
// until the ledger is checked.
type Message struct {
	ID     int // its index in the ledger
	Place  Place
	turn   int // its number in its place, from 0
	sender string
	TS     string
	// Revisions are the message itself and its edits, in order.
	Revisions []Span
	Deleted   *Span // nil if the message was not deleted
	// Attempts is the number of attempts until Slack had the first acknowledgement of one
	// of the message's events; 0 for none.
	Attempts int
	// OnSlack says that the daemon can read the message on Slack.
	OnSlack bool
	// Silent says that the message must get no reply: it is a channel message without a
	// mention, or it is older than the daemon's first start.
	Silent bool
	// Unaddressed says that the text mentions nobody.
	Unaddressed bool
	// mention is the mention of the bot in the text; empty for none.
	mention string
}

// Direct reports whether the message is in a direct chat of Slack.
func (m *Message) Direct() bool { return strings.HasPrefix(m.Place.Channel, "D") }

// needsReply reports whether the message must get a reply: the daemon acknowledged it or
// can read it on Slack.
func (m *Message) needsReply() bool {
	return !m.Silent && (m.OnSlack || !m.Revisions[0].Acked.IsZero())
}

// Slack returns the message as the fake of Slack takes it.
func (m *Message) Slack() slacktest.Message {
	said := slacktest.Message{Channel: m.Place.Channel, User: m.sender, Text: m.Text(0), TS: m.TS}
	if m.Direct() {
		said.ChannelType = "im"
	}
	if m.Place.Root != m.TS {
		said.ThreadTS = m.Place.Root
	}
	return said
}

// Request is one request that reached the model: the POST of a run.
type Request struct {
	Run, Daemon  string // daemon is the name of the process that sent it
	ID, Revision int
	With         []int // the other messages of the turn, and older messages without an answer
	Input        []int // all messages of the model's input, if the model records them
	Arrived      time.Time
	// Ended is just before the last byte of the answer was written. It is zero if the
	// connection broke earlier.
	Ended    time.Time
	Followed time.Time // the first GET of the run's stream; zero for none
}

// Ledger records all messages and all requests to the model.
type Ledger struct {
	// Expect returns the texts of the reply to a message, one for each post.
	Expect func(m *Message, revision int) []string
	// Model says that a model answers and that every request to it is recorded.
	Model bool
	// Margin is the time that the daemon has to apply an edit or a delete after the
	// acknowledgement: the event is durable then, but not yet recorded. A request to the
	// model must see every change that was acknowledged earlier than that; it may see
	// later ones.
	Margin time.Duration
	// Unordered says that the program promises no order of the replies in a thread.
	Unordered bool
	// Suspended describes when a daemon stood still around a time, for the details of a
	// violation; nil if no daemon ever does.
	Suspended func(daemon string, at time.Time) string
	// Mention is the platform's mention of the bot, before the text of a message in a channel.
	Mention string

	mu       sync.Mutex
	Messages []*Message
	Requests []*Request   // in the order of their arrival
	clock    atomic.Int64 // the newest ts of say, in microseconds
}

// DefaultMargin is enough for one daemon that has the store to itself.
const DefaultMargin = 300 * time.Millisecond

// New expects the replies of the echo agent.
func New() *Ledger {
	l := &Ledger{Expect: echo, Margin: DefaultMargin, Mention: "<@" + slacktest.BotUser + "> "}
	l.clock.Store(time.Now().UnixMicro())
	return l
}

// Say adds a conversation's next message, which is not on Slack, with a ts of its own.
func (l *Ledger) Say(c *Conversation) *Message {
	m := l.Add(c, Message{})
	c.SetTS(m, slacktest.Timestamp(time.UnixMicro(l.clock.Add(1))))
	return m
}

// Add gives the conversation's next message its number. The message has no ts yet.
func (l *Ledger) Add(c *Conversation, m Message) *Message {
	m.turn, m.Place, m.Revisions = c.turns, c.Place, []Span{{Sent: time.Now()}}
	if c.turns++; !m.Direct() && !m.Unaddressed {
		m.mention = l.Mention
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m.ID = len(l.Messages)
	m.sender = User(m.ID)
	l.Messages = append(l.Messages, &m)
	return &m
}

// Change calls do while no other goroutine changes a request.
func (l *Ledger) Change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// AddRequest records a request that has arrived.
func (l *Ledger) AddRequest(r *Request) { l.Change(func() { l.Requests = append(l.Requests, r) }) }

// LastRequest returns the newest request that matches; nil if there is none.
func (l *Ledger) LastRequest(matches func(*Request) bool) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range slices.Backward(l.Requests) {
		if matches(r) {
			return r
		}
	}
	return nil
}

// Since returns the messages from an index on.
func (l *Ledger) Since(first int) []*Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Messages[first:len(l.Messages):len(l.Messages)]
}

// Count returns the number of all messages.
func (l *Ledger) Count() int { return len(l.Since(0)) }

// Due counts the messages that must get a reply.
func (l *Ledger) Due() (n int) {
	for _, m := range l.Since(0) {
		if m.needsReply() {
			n++
		}
	}
	return n
}

// Acks returns the acknowledgement times of the messages from an index on: of those
// whose first event Slack sent once and of those that Slack sent again. It also counts the
// messages without an acknowledged event.
func (l *Ledger) Acks(first int) (once, again []time.Duration, none int) {
	for _, m := range l.Since(first) {
		took := m.Revisions[0].Acked.Sub(m.Revisions[0].Sent)
		switch {
		case m.Attempts == 1:
			once = append(once, took)
		case m.Attempts > 1:
			again = append(again, took)
		default:
			none++
		}
	}
	return once, again, none
}

// Waits returns the times from each message to the first post of its reply.
func (l *Ledger) Waits(posts []slacktest.Post) map[int]time.Duration {
	waits, messages := map[int]time.Duration{}, l.Since(0)
	for _, post := range slices.Backward(posts) {
		if id, _, _, ok := ReadMark(post.Shown()); ok && id < len(messages) {
			waits[id] = post.At.Sub(messages[id].Revisions[0].Sent)
		}
	}
	return waits
}

// Replies summarizes the waits of the messages from an index on.
func (l *Ledger) Replies(posts []slacktest.Post, first int) figure.Times {
	var all []time.Duration
	for id, wait := range l.Waits(posts) {
		if id >= first {
			all = append(all, wait)
		}
	}
	return figure.Summarize(all)
}

// Text is the sender's text: the mark of the message's only part, after a mention of
// the bot if the message needs one.
func (m *Message) Text(revision int) string {
	return m.mention + Mark(m.ID, revision, 1) + " are we still on for tomorrow, or should I tell the others that it is off?"
}

// echo returns the reply of the echo agent.
func echo(m *Message, revision int) []string { return []string{m.Text(revision)} }
