package discord

import "time"

// SetClock sets the clock.
func (a *Adapter) SetClock(now func() time.Time) { a.now = now }

// SetFastTimes sets short time limits of the gateway.
func (a *Adapter) SetFastTimes() {
	a.times.identifyEvery, a.times.invalidMin, a.times.invalidMax = 0, 0, time.Millisecond
	a.times.backoffMin, a.times.backoffMax = time.Millisecond, 10*time.Millisecond
	a.times.guilds = time.Second
}

// SetTimes sets the time after which the shard is down, and the time limit of opening.
func (a *Adapter) SetTimes(downAfter, open time.Duration) {
	a.times.downAfter, a.times.open = downAfter, open
}
