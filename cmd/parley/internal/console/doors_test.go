package console

import (
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/config"
)

func TestDoors(t *testing.T) {
	now, known := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), true
	d := newDoors(func() time.Time { return now }, func(operator.Caller) bool { return known })

	caller := operator.Caller{ID: "olga", Role: config.RoleOperator}
	admits := func(ticket string) bool {
		by, ok := d.redeem(ticket)
		return ok && by == caller
	}
	ticket := d.issue(caller)
	if !admits(ticket) || admits(ticket) {
		t.Error("a ticket admits once")
	}
	late := d.issue(caller)
	if now = now.Add(ticketTime); admits(late) || admits("") {
		t.Error("a ticket ends")
	}

	idle, busy := d.open(caller), d.open(caller)
	for range 3 {
		now = now.Add(idleTime / 2)
		if _, ok := d.use(busy); !ok || !d.isOpen(busy) {
			t.Error("a used session ended")
		}
	}
	for name, part := range map[string]entry{"cookie": {secret: busy.secret}, "place": {place: busy.place}, "cookie in another's place": {busy.secret, idle.place}} {
		if _, ok := d.use(part); ok {
			t.Errorf("the %s alone admits", name)
		}
	}
	if _, ok := d.use(idle); ok {
		t.Error("an idle session goes on")
	}
	for range 2 * sessionTime / idleTime {
		now = now.Add(idleTime / 2)
		d.use(busy)
	}
	if _, ok := d.use(busy); ok {
		t.Error("a session has no end")
	}

	removed, closed := d.open(caller), d.open(caller)
	if d.close(closed); d.isOpen(closed) {
		t.Error("a closed session is open")
	}
	if known = false; d.isOpen(removed) {
		t.Error("the session of a removed operator goes on")
	}
	known = true
	for range maxEntries + 5 {
		now = now.Add(time.Millisecond)
		d.open(caller)
	}
	if len(d.sessions) != maxEntries {
		t.Errorf("%d sessions", len(d.sessions))
	}
}
