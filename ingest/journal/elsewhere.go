package journal

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// What nodes tell one another is a hint and nothing more: who hears it looks into
// the store, and who misses it looks a second later anyway.

// lookAgain is what a node says that gives back its threads.
const lookAgain = "look"

// ring tells a node that a thread which it has got work; an empty name is nobody.
func (d *Desk) ring(node string, work Work, agent string, thread int64) {
	if d.bell != nil && node != "" && node != d.journal.node {
		d.bell.Ring(node, hint(work, agent, thread))
	}
}

// hint is work as nodes tell of it; the agent's name stands last, whatever is in it.
func hint(work Work, agent string, thread int64) string {
	return fmt.Sprintf("%s %d %s", work, thread, agent)
}

// ringAll tells every node to look for work.
func (d *Desk) ringAll() {
	if d.bell != nil {
		d.bell.Ring("", lookAgain)
	}
}

// listen hears what other nodes tell, until ctx ends.
func (d *Desk) listen(ctx context.Context) error {
	if d.bell == nil {
		return nil
	}
	return d.bell.Listen(ctx, d.journal.node, d.heard, d.look)
}

// heard wakes what another node tells of.
func (d *Desk) heard(words string) {
	if words == lookAgain {
		d.look()
		return
	}
	fields := strings.SplitN(words, " ", 3)
	if len(fields) != 3 {
		return // a newer version may say more
	}
	if thread, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
		d.Wake(Work(fields[0]), fields[2], thread)
	}
}

// look makes every lane look into the store at once.
func (d *Desk) look() {
	for _, l := range d.served() {
		d.scanAfter(l, 0)
		d.mu.Lock()
		l.signal()
		d.mu.Unlock()
	}
}

// Accepted sees to it that an envelope which Accept has taken is worked on: here,
// or where its thread is.
func (d *Desk) Accepted(c Custody) {
	switch {
	case c.Fence != 0:
		d.adopt(Lease{Thread: c.Thread, Fence: c.Fence, Key: c.Key, Until: c.Until})
	case c.Owner != "":
		d.ring(c.Owner, Intake, "", c.Thread)
		return
	case c.Idle && d.bell != nil:
		d.bell.Ring("", hint(Intake, "", c.Thread)) // no worker is free here, or it came without its thread's name
	}
	d.Wake(Intake, "", c.Thread)
}
