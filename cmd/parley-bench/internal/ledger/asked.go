package ledger

import (
	"fmt"
	"slices"
	"time"
)

// Death is the time between the decision to kill a daemon and its next start. A request that
// arrives meanwhile is one of the old process.
type Death struct{ From, To time.Time }

// AskedTwice describes the runs that were asked again without a reason: in the time between
// two POSTs of a run the daemon must have died, and after the run's stream was asked for there
// must be no second POST. A message must have one run.
func (l *Ledger) AskedTwice(deaths []Death) (faults []string, repeated int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs, last := map[int]string{}, map[string]*Request{}
	for _, a := range l.Requests {
		if run, ok := runs[a.ID]; ok && run != a.Run {
			faults = append(faults, fmt.Sprintf("m%d was asked in the runs %s and %s", a.ID, run, a.Run))
		}
		runs[a.ID] = a.Run
		if before := last[a.Run]; before != nil {
			repeated++
			died := func(d Death) bool { return before.Arrived.Before(d.To) && a.Arrived.After(d.From) }
			if !slices.ContainsFunc(deaths, died) || !before.Followed.IsZero() && before.Followed.Before(a.Arrived) {
				faults = append(faults, fmt.Sprintf("the run %s was asked again %v later", a.Run, a.Arrived.Sub(before.Arrived)))
			}
		}
		last[a.Run] = a
	}
	return faults, repeated
}
