package daemon

import (
	"fmt"
	"slices"
	"sync"

	"parley/adapters"
	"parley/cmd/parley/internal/figures"
)

// links are the states of an account's connections on this node.
type links struct {
	mu     sync.Mutex
	states map[string]adapters.Status // by the connection's name
	others int                        // connections of other programs
}

// shares notes the number of connections of other programs, and reports whether it has changed.
func (l *links) shares(others int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.others != others
	l.others = others
	return changed
}

// sharedWords are the warning about another program with the same account.
const sharedWords = "another program has the same app (its connections: %d), and each event goes to one program alone: end that, or give each an app of its own. " +
	"Connections of a daemon that was killed end within minutes."

// report stores a connection's state and returns the workspace's.
func (l *links) report(connection string, s adapters.Status) adapters.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states[connection] = s
	if s.State == adapters.Divided {
		delete(l.states, connection)
	}
	return l.workspace()
}

// status returns the workspace's state, and false before the first report.
func (l *links) status() (adapters.Status, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workspace(), len(l.states) > 0
}

// counts returns the numbers of connections by state.
func (l *links) counts() map[adapters.ConnectionState]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[adapters.ConnectionState]int{}
	for _, s := range l.states {
		counts[s.State]++
	}
	return counts
}

// refused reports whether the platform has refused a connection, which then stays stopped.
func (l *links) refused() bool {
	s, _ := l.status()
	return s.State == adapters.Refused
}

// workspace returns the workspace's state. The caller holds the lock.
func (l *links) workspace() (state adapters.Status) {
	first := len(figures.States)
	for _, s := range l.states {
		if at := slices.Index(figures.States, s.State); at < first {
			first, state = at, s
		}
	}
	if l.others > 0 {
		state.Warning = fmt.Sprintf(sharedWords, l.others)
	}
	return state
}

// up stores that a connection is up, and reports whether the others are up, refused, or on another
// node: then all events that can arrive do so. If several connections come up together, up returns
// true for one of them at least.
func (l *links) up(connection string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states[connection] = adapters.Status{State: adapters.Up, Since: l.states[connection].Since}
	for _, s := range l.states {
		if s.State == adapters.Starting || s.State == adapters.Down {
			return false
		}
	}
	return true
}
