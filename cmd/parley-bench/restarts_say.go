package main

import (
	"context"
	"fmt"
	"time"
)

// missing counts what was said while the daemon was down.
type missing struct{ all, roots, replies, unheard, direct, edits, unaddressed int }

func (m missing) String() string {
	return fmt.Sprintf("%d said while it was down (%d new threads, %d replies, %d in threads it never saw, %d direct; %d to somebody else) and %d edits",
		m.all, m.roots, m.replies, m.unheard, m.direct, m.unaddressed, m.edits)
}

// meanwhile says what is said while the daemon is down.
func (a *absences) meanwhile(ctx context.Context) (count missing) {
	var said []*message
	for count.all < a.messages && pause(ctx, 5*time.Millisecond) {
		if len(said) > 0 && a.random.Float64() < 0.1 {
			a.talk.edit(said[a.random.IntN(len(said))])
			count.edits++
			continue
		}
		c := a.choose(&count)
		m, _ := a.talk.say(c, a.random.Float64() < 0.25)
		said = append(said, m)
		count.all++
		if m.unaddressed {
			count.unaddressed++
		}
	}
	return count
}

// choose is where the next message is said.
func (a *absences) choose(count *missing) *conversation {
	switch draw := a.random.Float64(); {
	case draw < 0.2:
		c := newThread(a.random.IntN(a.channels))
		a.known = append(a.known, c)
		count.roots++
		return c
	case draw < 0.3 && len(a.unheard) > 0:
		c := a.unheard[0]
		a.unheard = a.unheard[1:]
		a.known = append(a.known, c)
		count.unheard++
		return c
	}
	c := a.known[a.random.IntN(len(a.known))]
	if c.place.channel[0] == 'D' {
		count.direct++
	} else {
		count.replies++
	}
	return c
}
