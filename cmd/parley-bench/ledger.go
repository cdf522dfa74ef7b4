package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
)

// place is the address of a conversation on the platform.
type place struct {
	channel string
	root    string // ts of the thread's first message; empty in a direct message
}

// span is the time between the sending of an event and its acknowledgement. acked is
// zero if the event was never acknowledged.
type span struct{ sent, acked time.Time }

// ackedBefore returns false for a nil span.
func (s *span) ackedBefore(t time.Time) bool {
	return s != nil && !s.acked.IsZero() && s.acked.Before(t)
}

// message is one message to the daemon. Only the goroutine that sends it writes to it
// until the ledger is checked.
type message struct {
	id     int // its index in the ledger
	place  place
	turn   int // its number in its place, from 0
	sender string
	ts     string
	// revisions are the message itself and its edits, in order.
	revisions []span
	deleted   *span // nil if the message was not deleted
	// attempts is the number of attempts until Slack had the first acknowledgement of one
	// of the message's events; 0 for none.
	attempts int
	// onSlack says that the daemon can read the message on Slack.
	onSlack bool
	// silent says that the message must get no reply: it is a channel message without a
	// mention, or it is older than the daemon's first start.
	silent bool
	// unaddressed says that the text mentions nobody.
	unaddressed bool
	// mention is the mention of the bot in the text; empty for none.
	mention string
}

func (m *message) direct() bool { return strings.HasPrefix(m.place.channel, "D") }

// needsReply reports whether the message must get a reply: the daemon acknowledged it or
// can read it on Slack.
func (m *message) needsReply() bool {
	return !m.silent && (m.onSlack || !m.revisions[0].acked.IsZero())
}

// slack returns the message as the fake of Slack takes it.
func (m *message) slack() slacktest.Message {
	said := slacktest.Message{Channel: m.place.channel, User: m.sender, Text: m.text(0), TS: m.ts}
	if m.direct() {
		said.ChannelType = "im"
	}
	if m.place.root != m.ts {
		said.ThreadTS = m.place.root
	}
	return said
}

// request is one request that reached the model: the POST of a run.
type request struct {
	run, daemon  string // daemon is the name of the process that sent it
	id, revision int
	with         []int // the other messages of the turn, and older messages without an answer
	input        []int // all messages of the model's input, if the model records them
	arrived      time.Time
	// ended is just before the last byte of the answer was written. It is zero if the
	// connection broke earlier.
	ended    time.Time
	followed time.Time // the first GET of the run's stream; zero for none
}

// ledger records all messages and all requests to the model.
type ledger struct {
	// expect returns the texts of the reply to a message, one for each post.
	expect func(m *message, revision int) []string
	// model says that a model answers and that every request to it is recorded.
	model bool
	// margin is the time that the daemon has to apply an edit or a delete after the
	// acknowledgement: the event is durable then, but not yet recorded. A request to the
	// model must see every change that was acknowledged earlier than that; it may see
	// later ones.
	margin time.Duration
	// unordered says that the program promises no order of the replies in a thread.
	unordered bool
	// suspended describes when a daemon stood still around a time, for the details of a
	// violation; nil if no daemon ever does.
	suspended func(daemon string, at time.Time) string
	// mention is the platform's mention of the bot, before the text of a message in a channel.
	mention string

	mu       sync.Mutex
	messages []*message
	requests []*request   // in the order of their arrival
	clock    atomic.Int64 // the newest ts of say, in microseconds
}

// defaultMargin is enough for one daemon that has the store to itself.
const defaultMargin = 300 * time.Millisecond

// newLedger expects the replies of the echo agent.
func newLedger() *ledger {
	l := &ledger{expect: echo, margin: defaultMargin, mention: "<@" + slacktest.BotUser + "> "}
	l.clock.Store(time.Now().UnixMicro())
	return l
}

// conversation is a place and the number of messages in it.
type conversation struct {
	place place
	turns int
}

// defaultChannels is the number of channels of a run that has no choice of its own.
const defaultChannels = 50

// newConversations returns the first n conversations of a run with the default channels.
func newConversations(n int) []*conversation { return newRooms(0, n, defaultChannels) }

// newRooms returns n conversations of a run with so many channels, from the first on.
func newRooms(first, n, channels int) []*conversation {
	all := make([]*conversation, n)
	for i := range all {
		all[i] = newRoom(first+i, channels)
	}
	return all
}

// newThread returns a new thread of the n-th channel.
func newThread(n int) *conversation {
	return &conversation{place: place{channel: fmt.Sprintf("C0ROOM%02d", n)}}
}

// newRoom returns the n-th conversation of a run with so many channels. Every fourth
// conversation is a direct message, the others are threads.
func newRoom(n, channels int) *conversation {
	if n%4 == 3 {
		return &conversation{place: place{channel: fmt.Sprintf("D0DIRECT%d", n)}}
	}
	return newThread((n - n/4) % channels)
}

// say adds a conversation's next message, which is not on Slack, with a ts of its own.
func (l *ledger) say(c *conversation) *message {
	m := l.add(c, message{})
	c.setTS(m, slacktest.Timestamp(time.UnixMicro(l.clock.Add(1))))
	return m
}

// add gives the conversation's next message its number. The message has no ts yet.
func (l *ledger) add(c *conversation, m message) *message {
	m.turn, m.place, m.revisions = c.turns, c.place, []span{{sent: time.Now()}}
	if c.turns++; !m.direct() && !m.unaddressed {
		m.mention = l.mention
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m.id = len(l.messages)
	m.sender = user(m.id)
	l.messages = append(l.messages, &m)
	return &m
}

// setTS sets the message's ts. If the conversation is a thread without a root, the
// message becomes its root.
func (c *conversation) setTS(m *message, ts string) {
	if c.place.root == "" && !m.direct() {
		c.place.root = ts
	}
	m.ts, m.place = ts, c.place
}

// change calls do while no other goroutine changes a request.
func (l *ledger) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

func (l *ledger) addRequest(r *request) { l.change(func() { l.requests = append(l.requests, r) }) }

// lastRequest returns the newest request that matches; nil if there is none.
func (l *ledger) lastRequest(matches func(*request) bool) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range slices.Backward(l.requests) {
		if matches(r) {
			return r
		}
	}
	return nil
}

// since returns the messages from an index on.
func (l *ledger) since(first int) []*message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages[first:len(l.messages):len(l.messages)]
}

// count returns the number of all messages.
func (l *ledger) count() int { return len(l.since(0)) }

// due counts the messages that must get a reply.
func (l *ledger) due() (n int) {
	for _, m := range l.since(0) {
		if m.needsReply() {
			n++
		}
	}
	return n
}

// acks returns the acknowledgement times of the messages from an index on: of those
// whose first event Slack sent once and of those that Slack sent again. It also counts the
// messages without an acknowledged event.
func (l *ledger) acks(first int) (once, again []time.Duration, none int) {
	for _, m := range l.since(first) {
		took := m.revisions[0].acked.Sub(m.revisions[0].sent)
		switch {
		case m.attempts == 1:
			once = append(once, took)
		case m.attempts > 1:
			again = append(again, took)
		default:
			none++
		}
	}
	return once, again, none
}

// waits returns the times from each message to the first post of its reply.
func (l *ledger) waits(posts []slacktest.Post) map[int]time.Duration {
	waits, messages := map[int]time.Duration{}, l.since(0)
	for _, post := range slices.Backward(posts) {
		if id, _, _, ok := readMark(post.Shown()); ok && id < len(messages) {
			waits[id] = post.At.Sub(messages[id].revisions[0].sent)
		}
	}
	return waits
}

// replies summarizes the waits of the messages from an index on.
func (l *ledger) replies(posts []slacktest.Post, first int) times {
	var all []time.Duration
	for id, wait := range l.waits(posts) {
		if id >= first {
			all = append(all, wait)
		}
	}
	return summarize(all)
}

// text is the sender's text: the mark of the message's only part, after a mention of
// the bot if the message needs one.
func (m *message) text(revision int) string {
	return m.mention + mark(m.id, revision, 1) + " are we still on for tomorrow, or should I tell the others that it is off?"
}

// echo returns the reply of the echo agent.
func echo(m *message, revision int) []string { return []string{m.text(revision)} }

// mark identifies a message's revision, and a part of the reply to it, in a text.
func mark(id, revision, part int) string { return fmt.Sprintf("m%d r%d p%d", id, revision, part) }

var markPattern = regexp.MustCompile(`\bm(\d{1,9}) r(\d{1,9}) p(\d{1,9})\b`)

// readMark finds the first mark in a text.
func readMark(text string) (id, revision, part int, ok bool) {
	found := markPattern.FindStringSubmatch(text)
	if found == nil {
		return 0, 0, 0, false
	}
	return toInt(found[1]), toInt(found[2]), toInt(found[3]), true
}

// readMarks returns the messages of all marks in a text.
func readMarks(text string) (ids []int) {
	for _, found := range markPattern.FindAllStringSubmatch(text, -1) {
		ids = append(ids, toInt(found[1]))
	}
	return ids
}

// toInt converts the digits of a mark, which are few enough for an int.
func toInt(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
