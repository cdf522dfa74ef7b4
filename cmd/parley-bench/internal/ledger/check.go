package ledger

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
	Details                 []string // of the first maxDetails violations
}

// maxDetails bounds the violations that a verdict describes.
const maxDetails = 10

func (v *verdict) add(kind violation, format string, args ...any) {
	v.counts[kind]++
	if len(v.Details) < maxDetails {
		v.Details = append(v.Details, string(kind)+": "+fmt.Sprintf(format, args...))
	}
}

// String returns one line of counts, and one line for each described violation.
func (v *verdict) String() string {
	counts := []string{fmt.Sprintf("%d messages (%d deleted later)", v.messages, v.deleted),
		fmt.Sprintf("%d replies (%d to an edit) in %d posts", v.replies, v.revised, v.posts)}
	for _, kind := range []violation{lost, doubled, disordered, misrouted, wrong} {
		counts = append(counts, fmt.Sprintf("%d %s", v.counts[kind], kind))
	}
	return strings.Join(append([]string{strings.Join(counts, ", ")}, v.Details...), "\n    ") + "\n"
}

// OnceEach counts the wanted things of which got has none, and those beyond the first.
func OnceEach[T comparable](wanted iter.Seq[T], got map[T]int) (missing, repeated int) {
	for one := range wanted {
		missing += max(0, 1-got[one])
		repeated += max(0, got[one]-1)
	}
	return missing, repeated
}

// audit is the state of one check.
type audit struct {
	*Ledger
	*verdict
	replies  map[int]map[int]slacktest.Post // the posts of each message's reply, by part
	requests map[int][]*Request
	joined   map[int]bool // messages that the reply to another message answers too
}

// Check compares the posts, in the order in which they took effect, with the ledger. No
// goroutine may write to the ledger any more.
func (l *Ledger) Check(posts []slacktest.Post) *verdict {
	a := audit{Ledger: l, verdict: &verdict{counts: map[violation]int{}, posts: len(posts)},
		replies: map[int]map[int]slacktest.Post{}, requests: map[int][]*Request{}, joined: map[int]bool{}}
	a.readPosts(posts)
	for _, r := range l.Requests {
		a.requests[r.ID] = append(a.requests[r.ID], r)
		for _, id := range r.With {
			a.joined[id] = a.joined[id] || a.replies[r.ID] != nil
		}
	}
	for _, m := range l.Messages {
		if m.needsReply() {
			a.verdict.messages++
		}
		if m.Deleted != nil {
			a.deleted++
		}
		a.checkRequests(m)
		a.checkReply(m, a.replies[m.ID])
	}
	a.verdict.replies = len(a.replies)
	return a.verdict
}

// readPosts checks each post by itself and against the posts before it.
func (a *audit) readPosts(posts []slacktest.Post) {
	newest := map[Place][2]int{} // the newest turn and its newest part
	for _, post := range posts {
		text := post.Shown()
		if post.Deleted {
			continue
		}
		id, revision, part, ok := ReadMark(text)
		if !ok || id >= len(a.Ledger.Messages) {
			a.verdict.add(wrong, "post %s answers no message: %.120q", post.TS, text)
			continue
		}
		m := a.Ledger.Messages[id]
		a.checkPost(m, revision, part, post)
		if a.replies[id] == nil {
			a.replies[id] = map[int]slacktest.Post{}
			a.revised += min(revision, 1)
		}
		if earlier, twice := a.replies[id][part]; twice {
			a.verdict.add(doubled, "%s at %s and %s, keys %q and %q", Mark(id, revision, part), earlier.TS, post.TS, earlier.Key(), post.Key())
			continue
		}
		a.replies[id][part] = post
		if before, any := newest[m.Place]; any && !a.Unordered && (m.turn < before[0] || m.turn == before[0] && part < before[1]) {
			a.verdict.add(disordered, "%s, message %d of %v, came after message %d", Mark(id, revision, part), m.turn, m.Place, before[0])
			continue
		}
		newest[m.Place] = [2]int{m.turn, part}
	}
}

// checkPost compares a post's place and text with the expected ones.
func (a *audit) checkPost(m *Message, revision, part int, post slacktest.Post) {
	if got := (Place{post.Channel, post.ThreadTS}); got != m.Place {
		a.verdict.add(misrouted, "%s went to %v, asked in %v", Mark(m.ID, revision, part), got, m.Place)
	}
	var texts []string
	if revision < len(m.Revisions) {
		texts = a.Expect(m, revision)
	}
	if part < 1 || part > len(texts) || texts[part-1] != post.Shown() {
		a.verdict.add(wrong, "%s reads %.120q", Mark(m.ID, revision, part), post.Shown())
	}
}

// checkRequests compares the requests to the model with the changes that had been
// acknowledged by then.
func (a *audit) checkRequests(m *Message) {
	for _, r := range a.requests[m.ID] {
		visible := r.Arrived.Add(-a.Margin)
		newest := 0
		for i := range m.Revisions {
			if m.Revisions[i].ackedBefore(visible) {
				newest = i
			}
		}
		if r.Revision < newest {
			acked := m.Revisions[newest].Acked
			a.verdict.add(wrong, "the model got m%d in revision %d, %v after the acknowledgement of revision %d%s", m.ID, r.Revision, r.Arrived.Sub(acked), newest, a.sender(r))
		}
		if m.Deleted.ackedBefore(visible) {
			a.verdict.add(wrong, "the model got m%d, %v after the acknowledgement of its delete%s", m.ID, r.Arrived.Sub(m.Deleted.Acked), a.sender(r))
		}
	}
}

// sender describes the daemon that sent a request.
func (a *audit) sender(r *Request) string {
	if a.Suspended == nil {
		return ""
	}
	return ", from " + r.Daemon + a.Suspended(r.Daemon, r.Arrived)
}

// checkReply compares the posts of a message's reply, by part, with the expected reply.
func (a *audit) checkReply(m *Message, parts map[int]slacktest.Post) {
	if m.Silent {
		if parts != nil {
			a.verdict.add(wrong, "m%d, message %d of %v, asked for no reply and got one", m.ID, m.turn, m.Place)
		}
		return
	}
	if parts == nil {
		// A deleted message needs no reply: the delete may have been recorded before the run.
		if m.Deleted == nil && m.needsReply() && !a.joined[m.ID] {
			a.verdict.add(lost, "m%d, message %d of %v, was never answered", m.ID, m.turn, m.Place)
		}
		return
	}
	if want := len(a.Expect(m, 0)); len(parts) != want {
		a.verdict.add(lost, "m%d, message %d of %v: only %d of %d posts of its reply came", m.ID, m.turn, m.Place, len(parts), want)
	}
	if a.Model {
		a.checkSource(m, parts)
	}
}

// checkSource checks that a reply is the model's last answer, since the daemon must not
// call the model again after it has committed a reply. It also checks that no delete had
// been acknowledged before that answer.
func (a *audit) checkSource(m *Message, parts map[int]slacktest.Post) {
	last := new(Request)
	for _, r := range a.requests[m.ID] {
		if r.Ended.After(last.Ended) {
			last = r
		}
	}
	if last.Ended.IsZero() {
		a.verdict.add(wrong, "m%d has a reply without an answer of the model", m.ID)
		return
	}
	for part, post := range parts {
		if _, revision, _, _ := ReadMark(post.Shown()); revision != last.Revision {
			a.verdict.add(wrong, "%s, but the model's last answer was to revision %d", Mark(m.ID, revision, part), last.Revision)
		}
	}
	if m.Deleted.ackedBefore(last.Ended.Add(-a.Margin)) {
		a.verdict.add(wrong, "m%d has a reply, although its delete was acknowledged %v before the model's answer",
			m.ID, last.Ended.Sub(m.Deleted.Acked))
	}
}
