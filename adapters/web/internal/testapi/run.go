package testapi

import (
	"context"
	"strconv"
	"testing"
	"time"

	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
)

// Run is a run of the agent helper of ours, which works.
type Run struct {
	*API
	*runs.Run
	// The paths of the run's updates and of its stream.
	Updates, Follow string
	claim           *threads.Claim
}

// Begin begins the run of a message that was accepted. It sets the clock to a millisecond after noon.
func (a *API) Begin() *Run {
	a.Helper()
	return a.begin(&(<-a.begun).Claim)
}

// Next begins the next run in the thread of a run that has ended.
func (r *Run) Next() *Run {
	r.Helper()
	return r.begin(r.claim)
}

func (a *API) begin(claim *threads.Claim) *Run {
	a.Helper()
	a.At(time.Millisecond)
	r := &Run{API: a, claim: claim}
	if handed, ok := a.handed.LoadAndDelete(claim.Thread); ok {
		r.Run = handed.(*runs.Run)
	} else {
		r.resume()
	}
	path := "/runs/" + r.ThreadID + "/" + r.ID
	r.Updates, r.Follow = path+"/updates", path+"/stream"
	return r
}

// resume begins the next run of the thread, or reads the unfinished one.
func (r *Run) resume() {
	r.Helper()
	run, err := r.Journal.Runs.BeginRun(r.Context(), r.claim, "helper", false, func(*runs.Run) bool { return false }, 10)
	r.must(err)
	if run == nil {
		r.Fatal("no run is due")
	}
	r.Run = run
}

// Asked starts an API with a run in Thread, whose agent has said nothing yet.
func Asked(t testing.TB) *Run {
	t.Helper()
	a := New(t)
	a.Do("POST", "/messages", `{"content":"so?","thread_id":"`+Thread+`","client_message_id":"c1"}`)
	return a.Begin()
}

// Working is Asked for an agent that has said a THOUGHT, "hm", 1 ms after noon, and the chunk "Y", 4 ms after noon. Their ids are
// 1 and 2.
func Working(t testing.TB) *Run {
	t.Helper()
	r := Asked(t)
	r.Say(1, stream.Message{Type: stream.Thought, Text: "hm"})
	r.Say(4, stream.Message{Type: stream.StreamingChunk, Text: "Y"})
	return r
}

// Said returns a message of an agent.
func Said(kind stream.Type, text string) stream.Message {
	return stream.Message{Type: kind, Text: text}
}

// Say adds messages to the run, some milliseconds after noon. Each comes a millisecond after the one before.
func (r *Run) Say(ms int, messages ...stream.Message) {
	r.Helper()
	r.At(time.Duration(ms) * time.Millisecond)
	r.must(r.Journal.Runs.AppendEvents(r.Context(), r.claim, r.Run, messages))
}

// Reply ends the run 9 ms after noon with a reply and further messages of the agent.
func (r *Run) Reply(text string, last ...stream.Message) {
	r.Helper()
	r.At(9 * time.Millisecond)
	_, err := r.Journal.Runs.CommitReply(r.Context(), r.claim, r.Run, runs.Reply{
		Content: text, Stale: "send", Events: last, Metadata: func(string, time.Duration) []byte { return []byte("{}") },
	})
	r.must(err)
}

// GiveUp ends the run 9 ms after noon with a notice.
func (r *Run) GiveUp(notice string) {
	r.Helper()
	r.At(9 * time.Millisecond)
	_, err := r.Journal.Runs.EndAttempt(r.Context(), r.claim, r.Run, runs.Unanswered{State: runs.Failed, Cause: "no route to host", Notice: outbox.Notice{Text: notice, Metadata: []byte("{}")}})
	r.must(err)
}

// Stop ends the run 9 ms after noon, because somebody wants no answer.
func (r *Run) Stop(notice string) {
	r.Helper()
	r.At(9 * time.Millisecond)
	_, err := r.Journal.Runs.StopRun(r.Context(), r.ID, outbox.Notice{Text: notice, Metadata: []byte("{}")})
	r.must(err)
}

// Page returns the run's state and the messages that are stored of it.
func (r *Run) Page() runs.Page {
	r.Helper()
	page, err := r.Journal.Runs.RunEvents(context.WithoutCancel(r.Context()), r.ID, 0, 10_000)
	r.must(err)
	return page
}

// Last returns the id of the last message that is stored of the run.
func (r *Run) Last() int64 {
	r.Helper()
	page := r.Page()
	return page.Events[len(page.Events)-1].Seq
}

// Later returns the later answer of the run's agent, which the next attempt finds; nil for none.
func (r *Run) Later() *stream.Message {
	r.Helper()
	r.resume()
	return r.Answer
}

// Message returns a compact message some milliseconds after noon.
func Message(ms, members string) string {
	return `{` + members + `,"ts":` + Stamp(ms) + `}`
}

// Stamp returns the time in milliseconds since 1970 some milliseconds after noon.
func Stamp(ms string) string {
	n, _ := strconv.ParseInt(ms, 10, 64)
	return strconv.FormatInt(Noon.UnixMilli()+n, 10)
}
