package main

import (
	"fmt"
	"strings"
	"time"

	"parley/adapters/slack/slacktest"
)

// violation is a kind of broken promise.
type violation string

// The kinds of violation.
const (
	lost       violation = "lost"         // acknowledged, and not answered whole
	doubled    violation = "doubled"      // the same part of a reply twice
	disordered violation = "out of order" // a reply before that to an earlier message of its thread
	misrouted  violation = "misrouted"    // a reply in another place than its message
	wrong      violation = "wrong"        // another text than the agent's, of an outdated revision, or to a deleted message
)

func violations() []violation { return []violation{lost, doubled, disordered, misrouted, wrong} }

// verdict is what a check has found.
type verdict struct {
	messages, deleted       int
	replies, revised, posts int // revised: replies to an edited message, as edited
	counts                  map[violation]int
	details                 []string // of the first few
}

// maxDetails bounds the violations that are described.
const maxDetails = 10

func (v *verdict) add(kind violation, format string, args ...any) {
	v.counts[kind]++
	if len(v.details) < maxDetails {
		v.details = append(v.details, string(kind)+": "+fmt.Sprintf(format, args...))
	}
}

func (v *verdict) total() (n int) {
	for _, count := range v.counts {
		n += count
	}
	return n
}

// String is one line of counts, and a line for each violation described.
func (v *verdict) String() string {
	words := []string{fmt.Sprintf("%d acknowledged (%d deleted later)", v.messages, v.deleted),
		fmt.Sprintf("%d replies (%d to an edit) in %d posts", v.replies, v.revised, v.posts)}
	for _, kind := range violations() {
		words = append(words, fmt.Sprintf("%d %s", v.counts[kind], kind))
	}
	return strings.Join(append([]string{strings.Join(words, ", ")}, v.details...), "\n    ") + "\n"
}

// reply is what was posted in answer to one message, by part.
type reply struct {
	parts map[int]slacktest.Post
	first time.Time // when its first post took effect
}

// audit is one check.
type audit struct {
	*ledger
	*verdict
	replies map[int]*reply
	asks    map[int][]ask
	joined  map[int]bool // messages that the reply to another one answers, too
}

// check holds the posts, in the order in which they took effect, against what
// was acknowledged. Nothing may be written to the ledger any more.
func (l *ledger) check(posts []slacktest.Post) *verdict {
	a := audit{ledger: l, verdict: &verdict{counts: map[violation]int{}, posts: len(posts)},
		replies: map[int]*reply{}, asks: map[int][]ask{}, joined: map[int]bool{}}
	a.readPosts(posts)
	for _, ask := range l.asks {
		a.asks[ask.id] = append(a.asks[ask.id], ask)
		for _, id := range ask.with {
			a.joined[id] = a.joined[id] || a.replies[ask.id] != nil
		}
	}
	for _, m := range l.messages {
		if !m.revisions[0].acked.IsZero() && !m.silent() {
			a.verdict.messages++
		}
		if m.deleted != nil {
			a.deleted++
		}
		a.judgeAsks(m)
		a.judgeReply(m, a.replies[m.id])
	}
	a.verdict.replies = len(a.replies)
	return a.verdict
}

// position is where a post stands in its conversation.
type position struct{ turn, part int }

func (p position) before(q position) bool {
	return p.turn < q.turn || p.turn == q.turn && p.part < q.part
}

// readPosts judges each post by itself and by those before it.
func (a *audit) readPosts(posts []slacktest.Post) {
	newest := map[place]position{}
	for _, post := range posts {
		text := post.Shown()
		if post.Deleted {
			continue
		}
		id, revision, part, ok := readMark(text)
		if !ok || id >= len(a.ledger.messages) {
			a.add(wrong, "post %s answers nothing that was said: %.120q", post.TS, text)
			continue
		}
		m := a.ledger.messages[id]
		if got := (place{post.Channel, post.ThreadTS}); got != m.place {
			a.add(misrouted, "%s went to %v, asked in %v", mark(id, revision, part), got, m.place)
		}
		if !a.expected(m, revision, part, text) {
			a.add(wrong, "%s reads %.120q", mark(id, revision, part), text)
		}
		r := a.replies[id]
		if r == nil {
			r = &reply{parts: map[int]slacktest.Post{}, first: post.At}
			a.replies[id] = r
			a.revised += min(revision, 1)
		}
		if earlier, twice := r.parts[part]; twice {
			a.add(doubled, "%s at %s and %s, keys %q and %q", mark(id, revision, part), earlier.TS, post.TS, earlier.Key(), post.Key())
			continue
		}
		r.parts[part] = post
		here := position{m.turn, part}
		if before, any := newest[m.place]; any && here.before(before) {
			a.add(disordered, "%s, message %d of %v, came after message %d", mark(id, revision, part), m.turn, m.place, before.turn)
			continue
		}
		newest[m.place] = here
	}
}

func (a *audit) expected(m *message, revision, part int, text string) bool {
	if revision >= len(m.revisions) {
		return false
	}
	texts := a.expect(m, revision)
	return part >= 1 && part <= len(texts) && texts[part-1] == text
}

// judgeAsks holds what the agent was asked against what had been acknowledged
// by then.
func (a *audit) judgeAsks(m *message) {
	for _, ask := range a.asks[m.id] {
		settled := ask.arrived.Add(-a.margin)
		if want := m.revisionAt(settled); ask.revision < want {
			acked := m.revisions[want].acked
			a.add(wrong, "the agent was asked for m%d in revision %d, %v %s after revision %d was acknowledged",
				m.id, ask.revision, ask.arrived.Sub(acked), a.restarted(acked, ask.arrived), want)
		}
		if m.deleted.ackedBefore(settled) {
			acked := m.deleted.acked
			a.add(wrong, "the agent was asked for m%d, %v %s after its delete was acknowledged",
				m.id, ask.arrived.Sub(acked), a.restarted(acked, ask.arrived))
		}
	}
}

// revisionAt is the newest revision that had been acknowledged.
func (m *message) revisionAt(t time.Time) (newest int) {
	for i := range m.revisions {
		if m.revisions[i].ackedBefore(t) {
			newest = i
		}
	}
	return newest
}

func (s *span) ackedBefore(t time.Time) bool {
	return s != nil && !s.acked.IsZero() && s.acked.Before(t)
}

// judgeReply holds a message's reply, nil for none, against what it is owed.
func (a *audit) judgeReply(m *message, r *reply) {
	if m.silent() {
		if r != nil {
			a.add(wrong, "m%d, message %d of %v, asked for nothing and was answered", m.id, m.turn, m.place)
		}
		return
	}
	if r == nil {
		// A delete excuses the silence: the reply would have come before it, or not at all.
		if m.deleted == nil && !m.revisions[0].acked.IsZero() && !a.joined[m.id] {
			a.add(lost, "m%d, message %d of %v, was never answered", m.id, m.turn, m.place)
		}
		return
	}
	want := len(a.expect(m, 0))
	if len(r.parts) != want {
		a.add(lost, "m%d, message %d of %v: %d of %d posts of its reply came", m.id, m.turn, m.place, len(r.parts), want)
	}
	if a.agent {
		a.judgeSource(m, r)
	}
}

// judgeSource checks that a reply is the agent's last answer, since after a reply
// is committed its agent is not asked again, and that no delete stood before it.
func (a *audit) judgeSource(m *message, r *reply) {
	var last ask
	for _, ask := range a.asks[m.id] {
		if ask.ended.After(last.ended) {
			last = ask
		}
	}
	if last.ended.IsZero() {
		a.add(wrong, "m%d was answered, and the agent never did", m.id)
		return
	}
	for part, post := range r.parts {
		if _, revision, _, _ := readMark(post.Shown()); revision != last.revision {
			a.add(wrong, "%s, and the agent's last answer was to revision %d", mark(m.id, revision, part), last.revision)
		}
	}
	if m.deleted.ackedBefore(last.ended.Add(-a.margin)) {
		a.add(wrong, "m%d was answered, although its delete was acknowledged %v before the agent had answered",
			m.id, last.ended.Sub(m.deleted.acked))
	}
}
