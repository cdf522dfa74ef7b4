package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
)

// every is the time between two posts of a channel. place is the time between their
// places in the journal's plan, which is longer so that posts after a late one can catch
// up.
const (
	every = 200 * time.Millisecond
	place = 204 * time.Millisecond
)

func pacePromises() []promise {
	return []promise{
		{"without a rate, no pace of a channel is stored", noPace},
		{"posts of many threads of one channel are spaced", paced},
		{"the pace of a channel delays no other channel", pacedApart},
		{"concurrent callers get different places", placesAtOnce},
		{"a post that leaves late delays the next one, which keeps its place", lateOneHoldsUp},
		{"a rate limit delays its channel, and never shortens a delay", pushedForward},
		{"a rate limit of a workspace delays all its channels, and no other workspace", wholeWorkspace},
		{"places that a rate limit has blocked are spaced again", spacedAnew},
	}
}

func noPace(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2")
	f.deliver(threadKey(1), "C1/8")
	f.deliver(threadKey(1), "C1/9")
	same(f, "paces", f.count("paces"), 0)
}

// queued returns deliveries of one channel, each in a thread of its own.
func (f *fixture) queued(n int) (out []*outbox.Delivery) {
	f.Helper()
	for i := range n {
		out = append(out, f.queuedIn(threadKey(i)))
	}
	return out
}

func (f *fixture) queuedIn(thread event.ThreadKey) *outbox.Delivery {
	f.Helper()
	f.exchange(thread, fmt.Sprint(thread, "/1"), "a", "A", "A")
	return f.delivery(thread)
}

func paced(f *fixture) {
	begun, deliveries := f.clock.Now(), f.queued(4)
	same(f, "first", f.slot(deliveries[0], every).SendBy, begun.Add(10*time.Second))
	for i, d := range deliveries[1:] {
		at := begun.Add(time.Duration(i+1) * place)
		same(f, "place", f.slot(d, every), outbox.Slot{Wait: at})
		same(f, "place of the second request", f.slot(d, every), outbox.Slot{Wait: at})
	}
	for _, d := range deliveries[1:] {
		f.clock.advance(place)
		same(f, "may leave at its place", f.slot(d, every).Wait.IsZero(), true)
	}
}

func pacedApart(f *fixture) {
	deliveries := f.queued(6)
	for i, d := range deliveries {
		if i == 3 {
			f.clock.advance(place)
		}
		d.Workspace, d.Post.Channel = []string{"acme", "acme", "globex"}[i%3], []string{"C1", "C2", "C1"}[i%3]
		same(f, fmt.Sprint("post ", i, " leaves"), f.slot(d, every).Wait.IsZero(), true)
	}
}

func placesAtOnce(f *fixture) {
	deliveries := f.queued(8)
	slots, errs := make([]outbox.Slot, len(deliveries)), make([]error, len(deliveries))
	var wait sync.WaitGroup
	for i, d := range deliveries {
		lease := f.claim(d.Thread)
		wait.Go(func() {
			slots[i], errs[i] = f.Outbox.BeginSend(f.ctx, lease, d, outbox.Send{Timeout: time.Minute, Every: every})
		})
	}
	wait.Wait()
	f.must(errors.Join(errs...))
	slices.SortFunc(slots, func(a, b outbox.Slot) int { return a.Wait.Compare(b.Wait) })
	for i, slot := range slots[1:] {
		same(f, "place", slot, outbox.Slot{Wait: f.clock.Now().Add(time.Duration(i+1) * place)})
	}
	same(f, "leaves immediately", slots[0].Wait.IsZero(), true)
}

func lateOneHoldsUp(f *fixture) {
	deliveries := f.queued(3)
	for _, d := range deliveries {
		f.slot(d, every)
	}
	f.clock.advance(2*place - time.Millisecond)
	same(f, "the late post leaves", f.slot(deliveries[1], every).Wait.IsZero(), true)
	left := f.clock.Now()
	f.clock.advance(time.Millisecond)
	same(f, "the next post at its place", f.slot(deliveries[2], every), outbox.Slot{Wait: left.Add(every)})
	newcomer := f.queuedIn(threadKey(9))
	same(f, "place of a new post", f.slot(newcomer, every), outbox.Slot{Wait: left.Add(time.Millisecond + place)})
	f.clock.advance(every - time.Millisecond)
	same(f, "the next post leaves", f.slot(deliveries[2], every).Wait.IsZero(), true)

	f.clock.advance(time.Hour)
	same(f, "the new post leaves late", f.slot(newcomer, every).Wait.IsZero(), true)
	for i, thread := range []event.ThreadKey{threadKey(10), threadKey(11)} {
		at := f.clock.Now().Add(every + time.Duration(i)*place)
		same(f, "a place after the late post", f.slot(f.queuedIn(thread), every), outbox.Slot{Wait: at})
	}
}

func pushedForward(f *fixture) {
	deliveries := f.queued(3)
	far, near := f.clock.Now().Add(time.Minute), f.clock.Now().Add(time.Second)
	f.sending(deliveries[0])
	f.limited(deliveries[0], channel, far)
	same(f, "another thread's", f.slot(deliveries[1], 0), outbox.Slot{Wait: far})
	f.limited(deliveries[1], channel, near)
	same(f, "after a shorter rate limit", f.slot(deliveries[2], 0), outbox.Slot{Wait: far})
	same(f, "after a shorter rate limit, with a pace", f.slot(deliveries[2], time.Second), outbox.Slot{Wait: far})

	elsewhere := *f.queuedIn(threadKey(9))
	elsewhere.Post.Channel = "C2"
	same(f, "another channel's", f.slot(&elsewhere, 0).Wait.IsZero(), true)
	f.clock.advance(time.Minute)
	same(f, "afterwards", f.slot(deliveries[0], 0).Wait.IsZero(), true)
}

// limited records that the platform has refused a delivery, and that a channel waits until
// a time. An empty channel means the whole workspace.
func (f *fixture) limited(d *outbox.Delivery, channel string, until time.Time) {
	f.Helper()
	f.must(f.Outbox.HoldUp(f.ctx, d.Workspace, channel, until))
	f.must(f.Outbox.Resend(f.ctx, d, until, "slow down"))
}

func wholeWorkspace(f *fixture) {
	deliveries := f.queued(13)
	take := func(workspace, channel string) *outbox.Delivery {
		d := deliveries[0]
		deliveries = deliveries[1:]
		d.Workspace, d.Post.Channel = workspace, channel
		return d
	}
	short, long := f.clock.Now().Add(time.Minute), f.clock.Now().Add(2*time.Minute)
	f.slot(take("acme", "C4"), every)
	f.must(f.Outbox.HoldUp(f.ctx, "acme", "C4", f.clock.Now().Add(time.Second)))
	f.must(f.Outbox.HoldUp(f.ctx, "acme", "", short))
	f.must(f.Outbox.HoldUp(f.ctx, "acme", "C3", long))
	f.must(f.Outbox.HoldUp(f.ctx, "umbrella", "", f.clock.Now().Add(time.Hour)))
	for _, c := range []struct {
		workspace, channel string
		wait               time.Time
	}{{"acme", channel, short}, {"acme", "C2", short}, {"acme", "C3", long}, {"acme", "C4", short}, {"globex", channel, time.Time{}}, {"globex", "C3", time.Time{}}} {
		for _, pace := range []time.Duration{0, every} {
			same(f, fmt.Sprint("wait in ", c.workspace, " ", c.channel, " at a pace of ", pace), f.slot(take(c.workspace, c.channel), pace).Wait, c.wait)
		}
	}
	f.message(threadKey(20), said("C1/8", "a"), triggers)
	run := f.begin(threadKey(20))
	for pace, want := range map[time.Duration]time.Time{0: short, every: short.Add(place)} { // a post waits in the channel's pace
		d, again, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), run, run.Previews, sign, true, outbox.Send{Timeout: time.Minute, Every: pace})
		f.must(err)
		same(f, "a preview waits", d == nil && again.Equal(want), true)
	}
	reply := answer("A", "A")
	reply.Send = &sending
	same(f, "a first delivery begins with its reply", f.commit(run, reply).Begun != nil, false)
	f.clock.advance(time.Minute)
	same(f, "afterwards", f.slot(f.delivery(threadKey(20)), 0).Wait.IsZero(), true)
	f.message(threadKey(21), said("C1/9", "a"), triggers)
	same(f, "a first delivery afterwards", f.commit(f.begin(threadKey(21)), reply).Begun != nil, true)
}

func spacedAnew(f *fixture) {
	for i, scope := range []string{channel, ""} {
		var deliveries []*outbox.Delivery
		for n := range 4 {
			deliveries = append(deliveries, f.queuedIn(threadKey(10*i+n)))
		}
		begun := f.clock.Now()
		for _, d := range deliveries {
			f.slot(d, every)
		}
		blocked := begun.Add(time.Minute)
		f.limited(deliveries[0], scope, blocked)
		f.clock.advance(time.Minute)
		for n, d := range deliveries {
			slot := f.slot(d, every)
			same(f, "waits", slot.Wait.Equal(blocked.Add(time.Duration(n)*place)), n > 0)
		}
		f.clock.advance(time.Hour)
	}
}

// talker is a thread with posts to send, in the model of paces.
type talker struct {
	key     event.ThreadKey
	node    *fixture
	posts   int
	comesAt time.Time
}

// street is the talkers of one channel, on several nodes. Its workspace has the same name.
type street struct {
	channel string
	nodes   []*fixture
	talkers []*talker
	left    time.Time     // time of the last post
	blocked time.Time     // blocked until then
	marks   time.Duration // posts that have left, a refused one included
	lost    time.Duration // lost by delays and by refusals
}

// paceHolds checks random interleavings of the deliveries of one channel, with nodes that
// are late and a platform that refuses. Posts keep their distance, and all leave within
// the time that they need one after the other.
func paceHolds(t *testing.T, engine storage.Engine) {
	story := 0
	rapid.Check(t, func(rt *rapid.T) {
		story++
		s, clock := street{channel: fmt.Sprint("P", story)}, newClock()
		for i := range 3 {
			s.nodes = append(s.nodes, process(rt, t.Context(), engine, clock, fmt.Sprint("node", story, ".", i), 0))
		}
		for i := range rapid.IntRange(2, 4).Draw(rt, "talkers") {
			s.talkers = append(s.talkers, s.talker(rt, event.ThreadKey(fmt.Sprintf("slack:acme:C1:%d.%d", story, i))))
		}
		begun := clock.Now()
		for len(s.talkers) > 0 {
			s.step(rt, clock)
		}
		if took, bound := clock.Now().Sub(begun), s.marks*place+s.lost; took > bound {
			rt.Fatalf("the posts took %v, want at most %v", took, bound)
		}
	})
}

func (s *street) talker(rt *rapid.T, key event.ThreadKey) *talker {
	k := &talker{key: key, node: s.nodes[0], posts: rapid.IntRange(1, 3).Draw(rt, "posts"), comesAt: s.nodes[0].clock.Now()}
	k.node.exchange(key, fmt.Sprint(key, "/1"), "a", "A", slices.Repeat([]string{"A"}, k.posts)...)
	delete(k.node.claims, k.node.thread(key))
	return k
}

// step advances to the talker whose time is first, and lets it act.
func (s *street) step(rt *rapid.T, clock *clock) {
	first := slices.MinFunc(s.talkers, func(a, b *talker) int { return a.comesAt.Compare(b.comesAt) }).comesAt
	now := clock.Now()
	if first.After(now) {
		clock.advance(first.Sub(now))
		now = first
	}
	ready := slices.DeleteFunc(slices.Clone(s.talkers), func(k *talker) bool { return k.comesAt.After(now) })
	k := rapid.SampledFrom(ready).Draw(rt, "who comes")
	k.comesAt = s.come(rt, k, now)
	if rapid.IntRange(0, 3).Draw(rt, "is late") == 0 {
		late := time.Duration(rapid.IntRange(1, 700).Draw(rt, "late")) * time.Millisecond
		k.comesAt, s.lost = k.comesAt.Add(late), s.lost+late
	}
	s.talkers = slices.DeleteFunc(s.talkers, func(k *talker) bool { return k.posts == 0 })
}

// come lets a talker request its place on any node, and send if it may. It returns the
// time of its next visit.
func (s *street) come(rt *rapid.T, k *talker, now time.Time) time.Time {
	k.node = rapid.SampledFrom(s.nodes).Draw(rt, "node")
	d := k.node.delivery(k.key)
	delete(k.node.claims, d.Thread)
	d.Workspace, d.Post.Channel = s.channel, s.channel
	slot := k.node.slot(d, every)
	if !slot.Wait.IsZero() {
		same(rt, "waits", slot.Wait.After(now), true)
		return slot.Wait
	}
	if s.marks++; now.Sub(s.left) < every || now.Before(s.blocked) {
		rt.Fatalf("a post left %v after the last one, %v before the end of a block", now.Sub(s.left), s.blocked.Sub(now))
	}
	s.left = now
	if rapid.IntRange(0, 7).Draw(rt, "is refused") == 0 {
		rest := time.Duration(rapid.IntRange(1, 2000).Draw(rt, "rest")) * time.Millisecond
		k.node.limited(d, rapid.SampledFrom([]string{s.channel, ""}).Draw(rt, "scope"), now.Add(rest))
		if s.lost += rest; s.blocked.Before(now.Add(rest)) {
			s.blocked = now.Add(rest)
		}
		return now.Add(rest)
	}
	_, err := k.node.Outbox.Sent(k.node.ctx, d, d.Key)
	k.node.must(err)
	k.posts--
	return now
}
