package main

import (
	"context"
	"slices"
	"time"
)

// mentions are the messages of which the daemon hears as soon as it is up again.
type mentions struct {
	fresh []*message         // each begins a thread
	old   []*message         // each goes on with a thread that has missed messages
	wants map[*message][]int // the missed messages of an old thread
}

// mention asks the daemon in new threads and in old ones, in turns. The missed messages
// are those from a number on. It returns once Slack is done with all.
func (a *absences) mention(ctx context.Context, first int) mentions {
	asked := mentions{wants: map[*message][]int{}}
	missed := a.missedSince(first)
	behind := slices.DeleteFunc(slices.Clone(a.known), func(c *conversation) bool { return len(missed[c.place]) == 0 })
	a.random.Shuffle(len(behind), func(i, j int) { behind[i], behind[j] = behind[j], behind[i] })
	for n := range a.mentions {
		c := newThread(n % a.channels)
		m, deliveries := a.talk.say(c, false)
		asked.fresh = append(asked.fresh, m)
		a.known = append(a.known, c)
		a.talk.await(ctx, m, deliveries)
		if n < len(behind) {
			m, deliveries := a.talk.say(behind[n], false)
			asked.old = append(asked.old, m)
			asked.wants[m] = missed[m.place]
			a.talk.await(ctx, m, deliveries)
		}
	}
	return asked
}

// missedSince returns the messages from a number on, by place.
func (a *absences) missedSince(first int) map[place][]int {
	l := a.talk.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	missed := map[place][]int{}
	for _, m := range l.messages[first:] {
		missed[m.place] = append(missed[m.place], m.id)
	}
	return missed
}

// report prints how long the answers took, and what the agent was given in the old
// threads. It counts the answers that were too late or were given without a missed message.
func (a *absences) report(asked mentions) {
	answered := map[int]time.Time{}
	for _, post := range a.api.Posts() {
		if id, _, _, ok := readMark(post.Shown()); ok {
			answered[id] = post.At
		}
	}
	took := func(list []*message, within time.Duration) times {
		var all []time.Duration
		for _, m := range list {
			after := answered[m.id].Sub(m.revisions[0].sent)
			if all = append(all, after); after <= 0 || after > within {
				a.late++
			}
		}
		return summarize(all)
	}
	inputs := a.inputs()
	wanted, given := 0, 0
	for m, missed := range asked.wants {
		for _, id := range missed {
			if wanted++; slices.Contains(inputs[m.id], id) {
				given++
			}
		}
	}
	a.late += wanted - given
	a.printf("    answered in %d new threads: %v\n", len(asked.fresh), took(asked.fresh, a.newWithin))
	a.printf("    answered in %d old threads: %v; %d of their %d missed messages were in the agent's input\n",
		len(asked.old), took(asked.old, a.oldWithin), given, wanted)
}

// inputs returns the messages that the agent was given with a message, at its last ask.
func (a *absences) inputs() map[int][]int {
	l := a.talk.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	inputs := map[int][]int{}
	for _, ask := range l.asks {
		inputs[ask.id] = ask.input
	}
	return inputs
}
