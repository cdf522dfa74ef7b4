package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
)

// talk is conversations on a Slack that delivers what happens by its own rules: over
// sockets or at the hook, again where that was in vain, and not at all where nobody
// was there. What is said is owed an answer in any case, since it can be read.
type talk struct {
	api    *slacktest.Server
	ledger *ledger

	mu     sync.Mutex
	heard  []time.Duration // until an event was acknowledged that Slack sent once
	late   []time.Duration // until one was that it sent again
	unread int             // messages of which no event was ever acknowledged
}

// room is the n-th conversation of a run that has so many channels: every fourth is a
// direct message, the others are threads, in one channel after the other.
func room(n, channels int) *conversation {
	if n%4 == 3 {
		return newConversation(n)
	}
	return newThread((n - n/4) % channels)
}

// newThread is a new thread of the n-th channel.
func newThread(n int) *conversation {
	return &conversation{place: place{channel: fmt.Sprintf("C0ROOM%02d", n)}}
}

// say puts the conversation's next message on Slack, which tells of it. From now on it
// is owed its answer.
func (t *talk) say(c *conversation, unaddressed bool) (*message, []slacktest.Delivery) {
	m := t.ledger.enter(c)
	t.ledger.silence(&m.unaddressed, unaddressed && !m.direct())
	now := time.Now()
	m.revisions[0] = span{now, now}
	said, deliveries := t.api.Say(t.slack(m))
	c.stands(m, said.TS)
	return m, deliveries
}

// put places a message of which nobody is told, and which nobody answers.
func (t *talk) put(c *conversation, ts string) *message {
	m := t.ledger.enter(c)
	t.ledger.silence(&m.early, true)
	said := t.slack(m)
	c.stands(m, t.api.Put(slacktest.Post{Channel: said.Channel, User: said.User, Text: said.Text, TS: ts, ThreadTS: said.ThreadTS}).TS)
	return m
}

// slack is the message before it has a place.
func (t *talk) slack(m *message) slacktest.Message {
	said := slacktest.Message{Channel: m.place.channel, User: m.sender, Text: m.text(0), ThreadTS: m.place.root}
	if m.direct() {
		said.ChannelType = "im"
	}
	return said
}

// edit changes the message as its author does, and tells of it.
func (t *talk) edit(m *message) []slacktest.Delivery {
	m.revisions = append(m.revisions, span{sent: time.Now()})
	event := t.api.Edit(m.place.channel, m.ts, m.text(len(m.revisions)-1))
	return []slacktest.Delivery{t.api.Push(event)}
}

// await returns when Slack is done with a message's events, whatever became of them.
func (t *talk) await(ctx context.Context, m *message, deliveries []slacktest.Delivery) {
	var group sync.WaitGroup
	var acked atomic.Bool
	for _, d := range deliveries {
		group.Go(func() {
			fate, err := d.Wait(ctx)
			if err == nil && fate.State == slacktest.Acked {
				acked.Store(true)
				t.note(fate, time.Since(m.revisions[0].sent))
			}
		})
	}
	group.Wait()
	if !acked.Load() && ctx.Err() == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.unread++
	}
}

// note counts an acknowledgement.
func (t *talk) note(fate slacktest.Result, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fate.Attempts > 1 {
		t.late = append(t.late, took)
	} else {
		t.heard = append(t.heard, took)
	}
}

// goOn has all conversations go on at once until stop is closed or their messages are
// used up: in each, the next one comes when Slack is done with the last.
func (t *talk) goOn(ctx context.Context, conversations []*conversation, p *pacer, stop <-chan struct{}, budget func() bool) {
	var group sync.WaitGroup
	for _, c := range conversations {
		group.Go(func() {
			for !closed(stop) && budget() && p.wait(ctx) {
				m, deliveries := t.say(c, false)
				t.await(ctx, m, deliveries)
			}
		})
	}
	group.Wait()
}

// silence says whether a message is one that is not answered, while others are counted.
func (l *ledger) silence(why *bool, silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*why = silent
}

// count is how many messages there are.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.messages)
}

// owed counts the messages that are to be answered.
func (l *ledger) owed() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.messages {
		if !m.silent() {
			n++
		}
	}
	return n
}

// caughtUp returns once every message has its answer and nothing is left to be read or
// done, or says after some time what is.
func (t *talk) caughtUp(ctx context.Context, n *nodes, within time.Duration) (left string, err error) {
	db, err := n.store()
	if err != nil {
		return "", err
	}
	defer db.Close()
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var trouble []string
	if _, err := t.api.Await(waiting, t.ledger.owed()); err != nil {
		trouble = append(trouble, err.Error())
	}
	for {
		gaps, err := gapsLeft(ctx, db)
		if err != nil {
			return "", err
		}
		backlog, err := readBacklog(ctx, db)
		if err != nil {
			return "", err
		}
		if gaps == 0 && backlog.empty() {
			break
		}
		if !pause(waiting, 50*time.Millisecond) {
			trouble = append(trouble, fmt.Sprintf("%d channels to be read, %v", gaps, backlog))
			break
		}
	}
	return strings.Join(trouble, "; "), n.alive()
}
