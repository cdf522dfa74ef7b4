package journaltest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// spoken is a message in the model.
type spoken struct {
	id, text string
	runs     bool
	envelope int64
	seq      int64 // 0 before the record
	revision int   // of the newest edit; 0 for none
	deleted  bool
	answers  int // replies to it
}

// imagined is a thread in the model.
type imagined struct {
	key      event.ThreadKey
	accepted []envelopes.AcceptRequest
	pending  []*spoken // in the order of acceptance
	listed   []*spoken // recorded messages, our replies included
	waiting  []*spoken // for a turn
	asked    []*spoken // in the current run
	runID    string    // empty if no run is current
	posts    []string  // not delivered yet
}

// machine drives a journal and its model together. Its processes are killed, and lose
// threads to other nodes.
type machine struct {
	*fixture
	threads []*imagined
	started int
	tokens  int64 // of the attempts that have ended
}

// modelHolds compares the journal with a model in memory, over random interleavings of
// the events of a thread. Nothing is lost, no message is answered twice, order is
// kept, and each attempt that has ended is paid once.
func modelHolds(t *testing.T, engine storage.Engine) {
	story := 0
	rapid.Check(t, func(rt *rapid.T) {
		story++
		m := &machine{fixture: process(rt, t.Context(), engine, newClock(), fmt.Sprint("node", story), 0)}
		for n := range 2 {
			m.threads = append(m.threads, &imagined{key: event.ThreadKey(fmt.Sprintf("slack:acme:C1:%d.%d", story, n))})
		}
		paid, used := m.paid(), m.used()
		rt.Repeat(map[string]func(*rapid.T){
			"accept":    m.acceptNew,
			"again":     m.acceptAgain,
			"record":    m.recordNext,
			"edit":      m.editSome,
			"delete":    m.deleteSome,
			"begin":     func(rt *rapid.T) { m.beginTurn(m.pick(rt)) },
			"commit":    func(rt *rapid.T) { m.answerTurn(m.pick(rt)) },
			"retry":     m.retryTurn,
			"interrupt": m.interruptTurn,
			"deliver":   func(rt *rapid.T) { m.deliverNext(m.pick(rt)) },
			"fence":     m.loseThread,
			"crash":     m.crash,
			"":          m.check,
		})
		m.finish(rt)
		same(m, "tokens that were paid", m.paid()-paid, m.tokens)
		same(m, "tokens that were used", m.used()-used, m.tokens)
	})
}

// attempt returns an attempt that ends now, with tokens that its sender and the workspace pay.
func (m *machine) attempt() runs.Attempt {
	m.tokens += 7
	return runs.Attempt{BegunAt: m.clock.Now(), TokensIn: 5, TokensOut: 2, Pays: paysFor("slack:U1", m.clock.Now())}
}

func (m *machine) pick(rt *rapid.T) *imagined { return rapid.SampledFrom(m.threads).Draw(rt, "thread") }

func (m *machine) acceptNew(rt *rapid.T) {
	t := m.pick(rt)
	s := &spoken{runs: rapid.Bool().Draw(rt, "runs")}
	a := m.envelope(event.KindMessage, t.key, "")
	s.id, s.text = fmt.Sprint(t.key, "/", m.serial), fmt.Sprint("text ", m.serial)
	a.Keys.Dedupe, a.Keys.MessageID = s.id, s.id
	s.envelope = m.accept(a).ID
	t.pending, t.accepted = append(t.pending, s), append(t.accepted, a)
}

func (m *machine) acceptAgain(rt *rapid.T) {
	t := m.pick(rt)
	if len(t.accepted) == 0 {
		rt.Skip("no message was accepted")
	}
	same(m, "duplicate", m.accept(rapid.SampledFrom(t.accepted).Draw(rt, "envelope")).Duplicate, true)
}

func (m *machine) recordNext(rt *rapid.T) {
	m.recordOne(m.pick(rt), rapid.Bool().Draw(rt, "room for a run"))
}

// recordOne records the thread's first envelope. It returns false if there is none. A run
// may begin with it, if the agent has room.
func (m *machine) recordOne(t *imagined, begin bool) bool {
	thread := m.thread(t.key)
	same(m, "pending", each(m.next(thread), func(p envelopes.Pending) int64 { return p.ID }),
		each(t.pending, func(s *spoken) int64 { return s.envelope }))
	if len(t.pending) == 0 {
		return false
	}
	s := t.pending[0]
	decide := passive
	if s.runs {
		decide = triggers
	}
	told := entry(s.envelope, event.Event{Kind: event.KindMessage, Message: said(s.id, s.text)}, decide)
	told.Begin = begin
	result, err := m.Recorder.Record(m.ctx, m.claim(thread), told)
	m.must(err)
	s.seq = int64(len(t.listed) + 1)
	same(m, "thread_seq", result.Message.Seq, s.seq)
	t.pending, t.listed = t.pending[1:], append(t.listed, s)
	switch {
	case result.Begun != nil:
		same(m, "an unexpected run began",
			[]bool{t.runID != "", len(t.waiting) > 0, len(t.pending) > 0, !s.runs || !begin}, make([]bool, 4))
		t.runID, t.asked = result.Begun.ID, []*spoken{s}
		same(m, "asked", contents(result.Begun.Messages), []string{s.text})
	case s.runs:
		t.waiting = append(t.waiting, s)
	}
	return true
}

func (m *machine) deleteSome(rt *rapid.T) {
	t := m.pick(rt)
	there := slices.DeleteFunc(slices.Clone(t.listed), func(s *spoken) bool { return s.deleted || s.id == "" })
	if len(there) == 0 || len(t.pending) > 0 {
		rt.Skip("no message can be deleted now")
	}
	s := rapid.SampledFrom(there).Draw(rt, "message")
	result := m.change(t.key, deleted(s.id), nil)
	same(m, "result", result.Disposition, event.Updated)
	s.deleted = true
	gone := func(x *spoken) bool { return x == s }
	t.waiting, t.asked = slices.DeleteFunc(t.waiting, gone), slices.DeleteFunc(t.asked, gone)
}

// editSome edits a message, maybe after its delete. An edit that is older than the stored state, or
// comes once more, changes nothing.
func (m *machine) editSome(rt *rapid.T) {
	t := m.pick(rt)
	there := slices.DeleteFunc(slices.Clone(t.listed), func(s *spoken) bool { return s.id == "" })
	if len(there) == 0 || len(t.pending) > 0 {
		rt.Skip("no message can be edited now")
	}
	s, revision := rapid.SampledFrom(there).Draw(rt, "message"), rapid.IntRange(1, 9).Draw(rt, "revision")
	text := fmt.Sprint(s.id, " in revision ", revision)
	e := edited(s.id, text, fmt.Sprint(revision))
	e.Message.Dated = len(e.Message.Revision)
	decide := passive
	if s.runs {
		decide = triggers
	}
	result := m.change(t.key, e, decide).Result
	switch {
	case s.deleted:
		same(m, "edit of a deleted message", result, *event.Ignore(event.ReasonDeleted))
	case revision <= s.revision:
		same(m, "edit that is not newer", result, *event.Ignore(event.ReasonNoChange))
	default:
		same(m, "edit", result.Disposition, event.Updated)
		s.text, s.revision = text, revision
	}
}

// beginTurn begins or resumes the thread's run; nil if none is due.
func (m *machine) beginTurn(t *imagined) *runs.Run {
	if m.thread(t.key) == 0 {
		return nil
	}
	m.clock.advance(time.Second) // a run that began with its message is due from then on
	run := m.mayBegin(t.key, false)
	if len(t.pending) > 0 {
		same(m, "a run began before every accepted message was recorded", run == nil, true)
		return nil
	}
	if t.runID == "" && len(t.waiting) > 0 {
		if run == nil {
			m.Fatalf("no run begins for the waiting messages of %s", t.key)
		}
		t.runID, t.asked, t.waiting = run.ID, t.waiting, nil
	}
	if run == nil {
		same(m, "current run", t.runID, "")
		return nil
	}
	same(m, "run", run.ID, t.runID)
	same(m, "asked", contents(run.Messages), each(t.asked, func(s *spoken) string { return s.text }))
	return run
}

func (m *machine) answerTurn(t *imagined) bool {
	run := m.beginTurn(t)
	if run == nil {
		return false
	}
	text := "re " + run.ID
	reply := answer(text, text)
	reply.Attempt = m.attempt()
	result := m.commit(run, reply).State
	if len(t.asked) == 0 {
		same(m, "result", result, runs.Canceled)
	} else {
		same(m, "result", result, runs.Done)
		t.listed = append(t.listed, &spoken{text: text, seq: int64(len(t.listed) + 1)})
		t.posts = append(t.posts, text)
	}
	for _, s := range t.asked {
		s.answers++
	}
	t.runID, t.asked = "", nil
	return true
}

func (m *machine) retryTurn(rt *rapid.T) {
	if run := m.beginTurn(m.pick(rt)); run != nil {
		at := m.clock.Now().Add(time.Second)
		m.leaves(run, runs.Unanswered{At: at, Failed: true, Attempt: m.attempt()})
		m.clock.advance(time.Second)
	}
}

func (m *machine) interruptTurn(rt *rapid.T) {
	t := m.pick(rt)
	if run := m.beginTurn(t); run != nil {
		m.leaves(run, runs.Unanswered{State: runs.Interrupted, Attempt: m.attempt()})
		t.waiting = append(t.asked, t.waiting...)
		slices.SortFunc(t.waiting, func(a, b *spoken) int { return int(a.seq - b.seq) })
		t.runID, t.asked = "", nil
	}
}

func (m *machine) deliverNext(t *imagined) bool {
	if len(t.posts) == 0 {
		return false
	}
	d := m.delivery(t.key)
	same(m, "post", d.Post.Text, t.posts[0])
	m.deliver(t.key, d.Key)
	t.posts = t.posts[1:]
	return true
}

// loseThread lets another node claim a thread for a moment, so writes with the old fence
// fail.
func (m *machine) loseThread(rt *rapid.T) {
	t := m.pick(rt)
	thread := m.thread(t.key)
	if thread == 0 {
		rt.Skip("the thread does not exist")
	}
	old := m.claim(thread)
	m.started++
	m.successor(fmt.Sprint(t.key, " other ", m.started)).claim(thread)
	delete(m.claims, thread)
	if len(t.pending) > 0 {
		s := t.pending[0]
		_, err := m.Recorder.Record(m.ctx, old, entry(s.envelope, event.Event{Kind: event.KindMessage, Message: said(s.id, s.text)}, triggers))
		m.fails("record", err, storage.ErrFenced)
	}
	_, err := m.Runs.BeginRun(m.ctx, old, agent, false, func(*runs.Run) bool { return false }, math.MaxInt64)
	m.fails("begin", err, storage.ErrFenced)
}

// crash kills the process; another one replaces it.
func (m *machine) crash(*rapid.T) {
	m.started++
	m.fixture = m.successor(fmt.Sprint(m.threads[0].key, " after ", m.started))
}

// check compares the stored threads with the model.
func (m *machine) check(*rapid.T) {
	for _, t := range m.threads {
		if m.thread(t.key) == 0 {
			continue
		}
		same(m, "thread", m.lines(t.key), each(t.listed, func(s *spoken) string {
			if s.deleted {
				return fmt.Sprintf("%d -", s.seq)
			}
			return fmt.Sprintf("%d %s", s.seq, s.text)
		}))
	}
}

// finish completes all remaining work. Then every message that triggered a run was
// answered once.
func (m *machine) finish(rt *rapid.T) {
	for _, t := range m.threads {
		if m.thread(t.key) == 0 {
			continue
		}
		for m.recordOne(t, false) {
		}
		for m.answerTurn(t) {
		}
		for m.deliverNext(t) {
		}
		for _, s := range t.listed {
			if s.runs && !s.deleted && s.answers != 1 || s.answers > 1 {
				m.Fatalf("%s was answered %d times", s.id, s.answers)
			}
		}
	}
	m.check(rt)
}
