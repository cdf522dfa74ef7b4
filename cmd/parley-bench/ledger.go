package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
)

// place is a conversation as the platform knows it.
type place struct {
	channel string
	root    string // ts of the thread's first message; empty in a direct message
}

// span is an event's way into the daemon. A zero acked means that nobody ever
// said 200 to it.
type span struct{ sent, acked time.Time }

// message is one message that was put to the daemon. The goroutine that sends it
// alone writes it, until the ledger is checked.
type message struct {
	id     int // its index in the ledger
	place  place
	turn   int // its number in its place, from 0
	sender string
	ts     string
	// revisions are the message itself and its edits, in order.
	revisions []span
	deleted   *span
	// unaddressed says that it stands in a channel and mentions nobody; early, that it
	// was said before the daemon's first start. Neither is answered.
	unaddressed, early bool
}

func (m *message) silent() bool { return m.unaddressed || m.early }

func (m *message) direct() bool { return strings.HasPrefix(m.place.channel, "D") }

// ask is one request that reached the agent.
type ask struct {
	run          string
	id, revision int
	with         []int // the other messages of its turn, and older ones without an answer
	input        []int // all messages that the agent was given, if the model keeps them
	arrived      time.Time
	// ended is just before the last byte of the answer was written; zero where
	// the connection broke before.
	ended time.Time
}

// ledger is what happened, as this side of the daemon saw it.
type ledger struct {
	// expect returns the texts of the reply to a message, a post each.
	expect func(m *message, revision int) []string
	// places puts a message on the platform before its event leaves; nil where nobody
	// looks for it there.
	places func(m *message)
	// agent says that every ask is on record.
	agent bool
	// margin is how long an edit or a delete may have been acknowledged without
	// having an effect yet: it is in custody then, and not recorded. What was
	// acknowledged earlier than that must have been seen; what was acknowledged
	// later may have been.
	margin time.Duration

	mu       sync.Mutex
	messages []*message
	asks     []ask
	starts   []time.Time  // when the daemon was started again
	clock    atomic.Int64 // the newest ts, in microseconds
}

// margin is a ledger's where one daemon has the store to itself.
const margin = 300 * time.Millisecond

func newLedger(expect func(*message, int) []string) *ledger {
	l := &ledger{expect: expect, margin: margin}
	l.clock.Store(time.Now().UnixMicro())
	return l
}

// nextTS is a ts that no other event has.
func (l *ledger) nextTS() string { return slacktest.Timestamp(time.UnixMicro(l.clock.Add(1))) }

// conversation is a place while it is being filled.
type conversation struct {
	place place
	turns int
}

// newConversation is the n-th of a run. Every fourth is a direct message; the
// others are threads of fifty channels.
func newConversation(n int) *conversation {
	if n%4 == 3 {
		return &conversation{place: place{channel: fmt.Sprintf("D0DIRECT%d", n)}}
	}
	return &conversation{place: place{channel: fmt.Sprintf("C0ROOM%02d", n%50)}}
}

// say adds the conversation's next message to the ledger. The first one in a
// channel opens its thread.
func (l *ledger) say(c *conversation) *message {
	m := l.enter(c)
	c.stands(m, l.nextTS())
	if l.places != nil {
		l.places(m)
	}
	return m
}

// enter gives the conversation's next message its number, before it stands anywhere.
func (l *ledger) enter(c *conversation) *message {
	m := &message{turn: c.turns, place: c.place, revisions: make([]span, 1)}
	c.turns++
	l.mu.Lock()
	defer l.mu.Unlock()
	m.id = len(l.messages)
	m.sender = speaker(m.id)
	l.messages = append(l.messages, m)
	return m
}

// stands is where a message has its place, which it opens if it is a channel's thread
// without a root.
func (c *conversation) stands(m *message, ts string) {
	if c.place.root == "" && !m.direct() {
		c.place.root = ts
	}
	m.ts, m.place = ts, c.place
}

func (l *ledger) asked(a ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks = append(l.asks, a)
}

// restarted says in words whether the daemon was started again in a span.
func (l *ledger) restarted(from, to time.Time) string {
	for _, start := range l.starts {
		if start.After(from) && start.Before(to) {
			return "and a restart"
		}
	}
	return "without a restart"
}

// text is what the sender types: the mark of the message's only part, behind a
// mention where one is needed.
func (m *message) text(revision int) string {
	words := mark(m.id, revision, 1) + " are we still on for tomorrow, or should I tell the others that it is off?"
	if m.direct() || m.unaddressed {
		return words
	}
	return "<@" + slacktest.BotUser + "> " + words
}

// echoed is the reply of the echo agent.
func echoed(m *message, revision int) []string { return []string{m.text(revision)} }

// mark names a message's revision, and a part of the reply to it, in a text.
func mark(id, revision, part int) string { return fmt.Sprintf("m%d r%d p%d", id, revision, part) }

var marked = regexp.MustCompile(`\bm(\d+) r(\d+) p(\d+)\b`)

// readMarks returns the messages of all marks in a text.
func readMarks(text string) (ids []int) {
	for _, found := range marked.FindAllStringSubmatch(text, -1) {
		if id, err := strconv.Atoi(found[1]); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// readMark finds the first mark in a text.
func readMark(text string) (id, revision, part int, ok bool) {
	found := marked.FindStringSubmatch(text)
	if found == nil {
		return 0, 0, 0, false
	}
	var numbers [3]int
	for i, digits := range found[1:] {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return 0, 0, 0, false
		}
		numbers[i] = n
	}
	return numbers[0], numbers[1], numbers[2], true
}
