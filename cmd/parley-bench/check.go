package main

import (
	"fmt"
	"iter"
	"strings"

	"parley/adapters/slack/slacktest"
)

// violation is a kind of broken promise.
type violation string

// The kinds of violation.
const (
	lost       violation = "lost"         // acknowledged or readable, and without a complete reply
	doubled    violation = "doubled"      // the same part of a reply twice
	disordered violation = "out of order" // a reply before the reply to an earlier message of its thread
	misrouted  violation = "misrouted"    // a reply in another place than its message
	wrong      violation = "wrong"        // a text that the agent never gave, an outdated revision, or a reply to a deleted message
)

// verdict is the result of a check.
type verdict struct {
	messages, deleted       int
	replies, revised, posts int // revised counts the replies to an edited revision
	counts                  map[violation]int
	details                 []string // of the first maxDetails violations
}

// maxDetails bounds the violations that a verdict describes.
const maxDetails = 10

func (v *verdict) add(kind violation, format string, args ...any) {
	v.counts[kind]++
	if len(v.details) < maxDetails {
		v.details = append(v.details, string(kind)+": "+fmt.Sprintf(format, args...))
	}
}

// String returns one line of counts, and one line for each described violation.
func (v *verdict) String() string {
	counts := []string{fmt.Sprintf("%d messages (%d deleted later)", v.messages, v.deleted),
		fmt.Sprintf("%d replies (%d to an edit) in %d posts", v.replies, v.revised, v.posts)}
	for _, kind := range []violation{lost, doubled, disordered, misrouted, wrong} {
		counts = append(counts, fmt.Sprintf("%d %s", v.counts[kind], kind))
	}
	return strings.Join(append([]string{strings.Join(counts, ", ")}, v.details...), "\n    ") + "\n"
}

// onceEach counts the wanted things of which got has none, and those beyond the first.
func onceEach[T comparable](wanted iter.Seq[T], got map[T]int) (missing, repeated int) {
	for one := range wanted {
		missing += max(0, 1-got[one])
		repeated += max(0, got[one]-1)
	}
	return missing, repeated
}

// audit is the state of one check.
type audit struct {
	*ledger
	*verdict
	replies  map[int]map[int]slacktest.Post // the posts of each message's reply, by part
	requests map[int][]*request
	joined   map[int]bool // messages that the reply to another message answers too
}

// check compares the posts, in the order in which they took effect, with the ledger. No
// goroutine may write to the ledger any more.
func (l *ledger) check(posts []slacktest.Post) *verdict {
	a := audit{ledger: l, verdict: &verdict{counts: map[violation]int{}, posts: len(posts)},
		replies: map[int]map[int]slacktest.Post{}, requests: map[int][]*request{}, joined: map[int]bool{}}
	a.readPosts(posts)
	for _, r := range l.requests {
		a.requests[r.id] = append(a.requests[r.id], r)
		for _, id := range r.with {
			a.joined[id] = a.joined[id] || a.replies[r.id] != nil
		}
	}
	for _, m := range l.messages {
		if m.needsReply() {
			a.verdict.messages++
		}
		if m.deleted != nil {
			a.deleted++
		}
		a.checkRequests(m)
		a.checkReply(m, a.replies[m.id])
	}
	a.verdict.replies = len(a.replies)
	return a.verdict
}

// readPosts checks each post by itself and against the posts before it.
func (a *audit) readPosts(posts []slacktest.Post) {
	newest := map[place][2]int{} // the newest turn and its newest part
	for _, post := range posts {
		text := post.Shown()
		if post.Deleted {
			continue
		}
		id, revision, part, ok := readMark(text)
		if !ok || id >= len(a.ledger.messages) {
			a.verdict.add(wrong, "post %s answers no message: %.120q", post.TS, text)
			continue
		}
		m := a.ledger.messages[id]
		a.checkPost(m, revision, part, post)
		if a.replies[id] == nil {
			a.replies[id] = map[int]slacktest.Post{}
			a.revised += min(revision, 1)
		}
		if earlier, twice := a.replies[id][part]; twice {
			a.verdict.add(doubled, "%s at %s and %s, keys %q and %q", mark(id, revision, part), earlier.TS, post.TS, earlier.Key(), post.Key())
			continue
		}
		a.replies[id][part] = post
		if before, any := newest[m.place]; any && !a.unordered && (m.turn < before[0] || m.turn == before[0] && part < before[1]) {
			a.verdict.add(disordered, "%s, message %d of %v, came after message %d", mark(id, revision, part), m.turn, m.place, before[0])
			continue
		}
		newest[m.place] = [2]int{m.turn, part}
	}
}

// checkPost compares a post's place and text with the expected ones.
func (a *audit) checkPost(m *message, revision, part int, post slacktest.Post) {
	if got := (place{post.Channel, post.ThreadTS}); got != m.place {
		a.verdict.add(misrouted, "%s went to %v, asked in %v", mark(m.id, revision, part), got, m.place)
	}
	var texts []string
	if revision < len(m.revisions) {
		texts = a.expect(m, revision)
	}
	if part < 1 || part > len(texts) || texts[part-1] != post.Shown() {
		a.verdict.add(wrong, "%s reads %.120q", mark(m.id, revision, part), post.Shown())
	}
}

// checkRequests compares the requests to the model with the changes that had been
// acknowledged by then.
func (a *audit) checkRequests(m *message) {
	for _, r := range a.requests[m.id] {
		visible := r.arrived.Add(-a.margin)
		newest := 0
		for i := range m.revisions {
			if m.revisions[i].ackedBefore(visible) {
				newest = i
			}
		}
		if r.revision < newest {
			acked := m.revisions[newest].acked
			a.verdict.add(wrong, "the model got m%d in revision %d, %v after the acknowledgement of revision %d%s", m.id, r.revision, r.arrived.Sub(acked), newest, a.sender(r))
		}
		if m.deleted.ackedBefore(visible) {
			a.verdict.add(wrong, "the model got m%d, %v after the acknowledgement of its delete%s", m.id, r.arrived.Sub(m.deleted.acked), a.sender(r))
		}
	}
}

// sender describes the daemon that sent a request.
func (a *audit) sender(r *request) string {
	if a.suspended == nil {
		return ""
	}
	return ", from " + r.daemon + a.suspended(r.daemon, r.arrived)
}

// checkReply compares the posts of a message's reply, by part, with the expected reply.
func (a *audit) checkReply(m *message, parts map[int]slacktest.Post) {
	if m.silent {
		if parts != nil {
			a.verdict.add(wrong, "m%d, message %d of %v, asked for no reply and got one", m.id, m.turn, m.place)
		}
		return
	}
	if parts == nil {
		// A deleted message needs no reply: the delete may have been recorded before the run.
		if m.deleted == nil && m.needsReply() && !a.joined[m.id] {
			a.verdict.add(lost, "m%d, message %d of %v, was never answered", m.id, m.turn, m.place)
		}
		return
	}
	if want := len(a.expect(m, 0)); len(parts) != want {
		a.verdict.add(lost, "m%d, message %d of %v: only %d of %d posts of its reply came", m.id, m.turn, m.place, len(parts), want)
	}
	if a.model {
		a.checkSource(m, parts)
	}
}

// checkSource checks that a reply is the model's last answer, since the daemon must not
// call the model again after it has committed a reply. It also checks that no delete had
// been acknowledged before that answer.
func (a *audit) checkSource(m *message, parts map[int]slacktest.Post) {
	last := new(request)
	for _, r := range a.requests[m.id] {
		if r.ended.After(last.ended) {
			last = r
		}
	}
	if last.ended.IsZero() {
		a.verdict.add(wrong, "m%d has a reply without an answer of the model", m.id)
		return
	}
	for part, post := range parts {
		if _, revision, _, _ := readMark(post.Shown()); revision != last.revision {
			a.verdict.add(wrong, "%s, but the model's last answer was to revision %d", mark(m.id, revision, part), last.revision)
		}
	}
	if m.deleted.ackedBefore(last.ended.Add(-a.margin)) {
		a.verdict.add(wrong, "m%d has a reply, although its delete was acknowledged %v before the model's answer",
			m.id, last.ended.Sub(m.deleted.acked))
	}
}
