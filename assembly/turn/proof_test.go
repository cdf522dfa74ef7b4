package turn_test

import (
	"context"
	"testing"
	"time"

	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// proves does something in d, asks for the proof, and answers.
func proves(d time.Duration, before func()) script {
	return func(ctx context.Context, emit func(stream.Message) error) error {
		if before != nil {
			before()
		}
		pass(d)
		if err := turn.Prove(ctx); err != nil {
			return err
		}
		return emit(stream.Message{Type: stream.Answer, Text: "done"})
	}
}

// TestAnOutdatedInputStays begins the run again with the current input.
func TestAnOutdatedInputStays(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{proves(2*time.Second, func() {
			d.accept(messages.TriggerRun, event.Event{Kind: event.KindEdit, Targets: []string{"1"}, Message: revised("1", "uno")})
		}), proves(0, nil)}
		d.asks("1", "one")
		pass(10 * time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.LeftOff, turn.Answered})
		same(t, "inputs", d.agent.said(), [][]string{{"one"}, {"uno"}})
		same(t, "requests under one run", d.agent.inputs[0].RunID, d.agent.inputs[1].RunID)
		same(t, "posts", d.deliveries(), []string{"done"})
	})
}

// TestAnOldInputThatStandsLeaves without a further attempt.
func TestAnOldInputThatStandsLeaves(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{proves(20*time.Second, nil)}
		d.asks("1", "one")
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
	})
}

// TestAnInputOfALostClaimStays, and so does one that the store cannot prove.
func TestAnInputOfALostClaimStays(t *testing.T) {
	for name, lose := range map[string]func(d *fixture){
		"another node has the thread": func(d *fixture) {
			d.must(d.engine.Write(d.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
				_, err := tx.Exec(`UPDATE threads SET fence = fence + 1`)
				return err
			}))
		},
		"the store is away": func(d *fixture) { d.engine.blind.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				d.agent.does = []script{proves(2*time.Second, func() { lose(d) })}
				d.asks("1", "one")
				pass(2500 * time.Millisecond)
				d.engine.blind.Store(false)
				same(t, "outcomes", d.outcomes()[:1], []turn.Outcome{turn.LeftOff})
				pass(time.Minute)
				same(t, "posts", d.deliveries(), []string{"ok"})
			})
		})
	}
}

// TestAnOutdatedMessageIsReadAgain before it is handed to a run that goes on.
func TestAnOutdatedMessageIsReadAgain(t *testing.T) {
	s := &steered{}
	inBubble(t, steering(s), func(d *fixture) {
		s.proof = func(ctx context.Context) error {
			s.proof = nil
			pass(2 * time.Second)
			d.accept(messages.TriggerRun, event.Event{Kind: event.KindEdit, Targets: []string{"2"}, Message: revised("2", "and due")})
			return turn.Prove(ctx)
		}
		d.agent.does = []script{thinks(20*time.Second, "both done")}
		d.asks("1", "one")
		pass(time.Second)
		run := d.running()
		d.asks("2", "and two")
		pass(time.Minute)
		same(t, "given", s.given, []string{run + " [Olivia]: and due"})
	})
}
