package turn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/stream"
)

// TestSilence: an agent may say nothing, with the quiet reply to everybody, and with an empty answer
// to people who did not address the bot. Nothing is posted, previewed or tried again.
func TestSilence(t *testing.T) {
	empty := fails(fmt.Errorf("the model returned no text: %w", turn.ErrEmpty))
	quiet := []turn.Outcome{turn.Quiet}
	failed := []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}
	for name, c := range map[string]struct {
		reason string
		does   script
		want   []turn.Outcome
		posts  []string
		shown  []string
	}{
		"the quiet reply":                     {event.ReasonOpen, answers(" NO_REPLY\n"), quiet, nil, nil},
		"the quiet reply in tokens":           {event.ReasonFollowed, streams(token("NO"), token("_REPLY"), stream.Message{Type: stream.Answer, Text: "NO_REPLY"}), quiet, nil, nil},
		"the quiet reply to a mention":        {event.ReasonMention, answers("NO_REPLY"), quiet, nil, nil},
		"an empty answer":                     {event.ReasonOpen, answers(" \n"), quiet, nil, nil},
		"an agent without words":              {event.ReasonFollowed, empty, quiet, nil, nil},
		"no answer":                           {event.ReasonOpen, fails(nil), quiet, nil, nil},
		"an agent without words to a mention": {event.ReasonMention, empty, failed, []string{"Sorry, something went wrong while I was answering this. Please ask again later."}, nil},
		"an empty answer to a mention":        {event.ReasonMention, answers(" \n"), failed, []string{"Sorry, something went wrong while I was answering this. Please ask again later."}, nil},
		"words that begin like it": {
			event.ReasonOpen, streams(token("NO"), token("_R"), token("OOM left"), stream.Message{Type: stream.Answer, Text: "NO_ROOM left"}),
			[]turn.Outcome{turn.Answered}, []string{"NO_ROOM left"}, []string{"NO_ROOM left"},
		},
		"a file without words": {
			event.ReasonOpen, streams(stream.Message{Type: stream.Answer, Details: []byte(`{"files":[{"name":"plot.png","mime_type":"image/png","data":"aGk="}]}`)}),
			[]turn.Outcome{turn.Answered}, []string{"", ""}, nil, // an empty text, and the file
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(d *fixture) { d.profile.QuietReply = turn.DefaultQuietReply }, func(d *fixture) {
				d.reason, d.agent.does = c.reason, []script{c.does, c.does, c.does}
				d.asks("1", "so quiet here")
				pass(time.Minute)
				same(t, "outcomes", d.outcomes(), c.want)
				same(t, "posts", d.deliveries(), c.posts)
				same(t, "preview", d.shown[0], c.shown)
				if c.want[0] != turn.Quiet {
					return
				}
				same(t, "state of the run", d.all()[0].Asked.State, "done")
				d.agent.does = nil
				d.asks("2", "and now?")
				same(t, "the next turn", d.outcomes(), append(c.want, turn.Answered))
				same(t, "its input", d.assembled(1), "user: [Olivia]: so quiet here\nuser: [Olivia]: and now?\n")
			})
		})
	}
}

// TestSchedulesAreSilent: no person waits for the answer to a schedule. An empty answer, NO_REPLY of any agent, and a failure
// post nothing, and people see no preview.
func TestSchedulesAreSilent(t *testing.T) {
	quiet, failed := []turn.Outcome{turn.Quiet}, []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}
	for name, c := range map[string]struct {
		does  script
		want  []turn.Outcome
		posts []string
	}{
		"no reply":        {answers(" NO_REPLY\n"), quiet, nil},
		"an empty answer": {answers(" \n"), quiet, nil},
		"no answer":       {fails(nil), quiet, nil},
		"a failure":       {fails(errors.New("no")), failed, nil},
		"an answer":       {streams(token("It "), token("rains."), stream.Message{Type: stream.Answer, Text: "It rains."}), []turn.Outcome{turn.Answered}, []string{"It rains."}},
	} {
		for _, reply := range []string{"", turn.DefaultQuietReply, "SILENCE"} {
			t.Run(name+" "+reply, func(t *testing.T) {
				inBubble(t, func(d *fixture) { d.profile.QuietReply = reply }, func(d *fixture) {
					d.reason, d.agent.does = event.ReasonSchedule, []script{c.does, c.does, c.does}
					d.asks("1", "does it rain?")
					pass(time.Minute)
					same(t, "outcomes", d.outcomes(), c.want)
					same(t, "posts", d.deliveries(), c.posts)
					same(t, "preview", d.shown[0], nil)
					for _, m := range d.all() {
						if strings.Contains(m.Content, "Sorry") {
							t.Errorf("the thread has %q", m.Content)
						}
					}
				})
			})
		}
	}
}

// TestFollowersSeeNoSilence: a client that follows a run sees no token of the quiet reply, and every token of
// another answer.
func TestFollowersSeeNoSilence(t *testing.T) {
	for text, want := range map[string][]string{"NO_REPLY": nil, "NO_ROOM": {"NO_RO", "OM"}} {
		inBubble(t, api, func(d *fixture) {
			d.profile.QuietReply = turn.DefaultQuietReply
			script, next := steps(streams(token(text[:2])), streams(token(text[2:5])), streams(token(text[5:])), answers(text))
			d.agent.does = []func(context.Context, func(stream.Message) error) error{script}
			d.asks("1", "so quiet here")
			var chunks []string
			for range 3 {
				next()
				pass(time.Second)
			}
			page, err := d.journal.Runs.RunEvents(d.Context(), d.agent.inputs[0].RunID, 0, 100)
			d.must(err)
			for _, e := range page.Events {
				chunks = append(chunks, e.Text)
			}
			same(t, text, chunks, want)
			next()
		})
	}
}
