package turn_test

import (
	"testing"
	"time"

	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/stream"
)

// answers returns the senders and contents of the thread's replies.
func (d *fixture) answers() (list []string) {
	d.Helper()
	for _, reply := range d.replies() {
		list = append(list, reply.SenderID+": "+reply.Content)
	}
	return list
}

// TestAMessageOfAnotherTurnInterruptsOnce covers messages that cannot join the turn that they
// interrupt: the agent is asked again once, and every message is answered.
func TestAMessageOfAnotherTurnInterruptsOnce(t *testing.T) {
	t.Run("with an id for its run", func(t *testing.T) {
		inBubble(t, interrupting, func(d *fixture) {
			d.agent.does = []script{thinks(time.Second, "never sent"), thinks(time.Second, "one"), thinks(time.Second, "two")}
			d.asks("1", "first")
			m := human("2", "second")
			m.RunID = "run-of-a-client"
			d.record("run", m)
			pass(10 * time.Second)
			same(t, "replies", d.answers(), []string{"agent:helper: one", "agent:helper: two"})
		})
	})
	t.Run("behind one to another agent", func(t *testing.T) {
		inBubble(t, interrupting, func(d *fixture) {
			d.agent.does = []script{thinks(time.Second, "never sent"), thinks(time.Second, "one"), thinks(time.Second, "two"), thinks(time.Second, "three")}
			d.asks("1", "first")
			d.asked = "other"
			d.asks("2", "second")
			d.asked = "helper"
			d.asks("3", "third")
			pass(10 * time.Second)
			same(t, "replies", d.answers(), []string{"agent:helper: one", "agent:other: two", "agent:helper: three"})
		})
	})
}

// TestARunHearsAStopAfterAMessageToAnotherAgent proves that the other agent's worker leaves a
// thread alone in which a run goes on.
func TestARunHearsAStopAfterAMessageToAnotherAgent(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{thinks(20*time.Second, "late")}
		d.asks("1", "first")
		pass(2 * time.Second)
		d.asked = "other"
		d.record("passive", human("2", "by the way"))
		d.asks("3", "second")
		d.asked = "helper"
		begun := time.Now()
		d.asks("4", "/stop")
		same(t, "outcome", d.outcomes()[0], turn.Canceled)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the run went on for %v", took)
		}
		pass(5 * time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"first"}, {"second"}})
	})
}

// TestAHandedRunIsItsAgents lets a run that began with its message wait for a worker of its agent
// while a worker of another agent is free.
func TestAHandedRunIsItsAgents(t *testing.T) {
	inBubble(t, func(d *fixture) { d.slots = 1 }, func(d *fixture) {
		d.agent.does = []script{thinks(20*time.Second, "busy"), thinks(time.Second, "one"), thinks(time.Second, "two")}
		d.place = event.ThreadKey("slack:acme:C1:9")
		d.asks("9", "work")
		d.place = key
		d.asks("1", "first")
		d.asked = "other"
		d.asks("2", "second")
		pass(40 * time.Second)
		same(t, "replies", d.answers(), []string{"agent:helper: one", "agent:other: two"})
	})
}

// TestAnHeirLeavesARunThatGoesOn removes the agent of a thread during a run.
func TestAnHeirLeavesARunThatGoesOn(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{thinks(20*time.Second, "one")}
		d.asks("1", "first")
		d.must(d.journal.Runs.AssignOrphans(d.Context(), []string{"other"}, "other", 2*time.Minute))
		pass(40 * time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"first"}})
		same(t, "replies", d.answers(), []string{"agent:helper: one"})
	})
}

// TestAFileThatTheStoreRefuses waits for the store, for a bounded time. Then the agent is asked again.
func TestAFileThatTheStoreRefuses(t *testing.T) {
	for refused, want := range map[time.Duration][]turn.Outcome{100 * time.Millisecond: {turn.Answered}, 12 * time.Minute: {turn.LeftOff, turn.Answered}} {
		inBubble(t, func(d *fixture) { d.noFile = time.Now().Add(refused) }, func(d *fixture) {
			answer := streams(stream.Message{Type: stream.Answer, Text: "here", Details: []byte(`{"files":[{"name":"a.txt","mime_type":"text/plain","data":"aGk="}]}`)})
			d.agent.does = []script{answer, answer}
			d.asks("1", "first")
			pass(refused + time.Second)
			same(t, "outcomes", d.outcomes(), want)
			same(t, "files", d.files(), []string{"a.txt"})
		})
	}
}
