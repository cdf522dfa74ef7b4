package discord

import "time"

// SetClock sets the clock.
func (a *Adapter) SetClock(now func() time.Time) { a.now = now }

// SetFastTimes sets short time limits of the gateway.
func (a *Adapter) SetFastTimes() {
	a.limits.identifyEvery, a.limits.invalidMin, a.limits.invalidMax = 0, 0, time.Millisecond
	a.limits.backoffMin, a.limits.backoffMax = time.Millisecond, 10*time.Millisecond
	a.limits.guilds, a.limits.look = time.Second, 10*time.Millisecond
}

// SetIdentifyEvery sets the time between two identifies of one key.
func (a *Adapter) SetIdentifyEvery(d time.Duration) { a.limits.identifyEvery = d }

// SetWaiting sets the bound of the events that wait for the store, in bytes.
func (a *Adapter) SetWaiting(bytes int) { a.limits.waiting = bytes }

// SetTimes sets the time after which the shard is down, and the time limit of opening.
func (a *Adapter) SetTimes(downAfter, open time.Duration) {
	a.limits.downAfter, a.limits.open = downAfter, open
}

// SetGuildsWait sets the longest wait for the next server of a new session.
func (a *Adapter) SetGuildsWait(d time.Duration) { a.limits.guilds = d }
