package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/budgets"
)

// Limits bound the runs that messages ask for. A zero Rate is no bound.
type Limits struct {
	RunsPerUser      Rate `yaml:"runs_per_user"` // by sender_id
	RunsPerWorkspace Rate `yaml:"runs_per_workspace"`
}

// Rate is a number of runs within a time.
type Rate struct {
	Runs int
	Per  time.Duration
	// Channel is the channel whose runs count. It is empty for those of the workspace.
	Channel string
}

// UnmarshalText reads 0 or a rate such as 60/h or 10/15m.
func (r *Rate) UnmarshalText(text []byte) error {
	fault := errors.New("must be 0 or a number of runs in a time, such as 60/h or 10/15m")
	*r = Rate{}
	if string(text) == "0" {
		return nil
	}
	runs, per, _ := strings.Cut(string(text), "/")
	n, err := strconv.ParseUint(runs, 10, 31)
	if err != nil || n == 0 {
		return fault
	}
	if unit, ok := map[string]string{"s": "1s", "m": "1m", "h": "1h", "d": "24h"}[per]; ok {
		per = unit
	}
	if r.Per, err = time.ParseDuration(per); err != nil || r.Per < time.Second {
		return fault
	}
	r.Runs = int(n)
	return nil
}

// maxBudgetName bounds the name of a budget, in bytes. A longer one is replaced by its hash.
const maxBudgetName = 256

// budgets returns the counters of the run that a message asks for; none without limits. The
// first one is its sender's, and remembers that the sender was told. Those of a sender come
// before those of all, and a channel's before the workspace's, so that two messages never lock
// counters in opposite orders.
func (s Settings) budgets(m *event.Message) (list []budgets.Budget) {
	sender := cmp.Or(m.LimitedAs, m.Metadata.SenderID)
	add := func(r Rate, counter string, bounded bool) {
		b := budgets.Budget{Name: r.Channel + " " + counter, Per: r.Per}
		if len(b.Name) > maxBudgetName {
			b.Name = adapters.Digest([]byte(b.Name))
		}
		if bounded {
			b.Most = int64(r.Runs)
		}
		if r.Runs > 0 {
			list = append(list, b)
		}
	}
	user, all := s.Limits.RunsPerUser, s.Limits.RunsPerWorkspace
	if user.Runs == 0 {
		add(all, "told "+sender, false)
	}
	add(user, "by "+sender, true)
	if user.Channel != "" {
		add(s.WorkspaceLimits.RunsPerUser, "by "+sender, false)
	}
	add(all, "all", true)
	if all.Channel != "" {
		add(s.WorkspaceLimits.RunsPerWorkspace, "all", false)
	}
	return list
}

// Limited returns the time from which on the sender of an envelope of our API may ask for a run
// again. It is zero if the sender may now, if the message asks for none, such as a command, or if
// the envelope was accepted before. Runs that begin meanwhile are counted only when a message is
// recorded.
func (in *Ingest) Limited(ctx context.Context, envelope event.Envelope) (time.Time, error) {
	w := in.workspace(envelope.Platform, envelope.Workspace)
	if w == nil {
		return time.Time{}, fmt.Errorf("workspace %q is not configured", envelope.Workspace)
	}
	keys := w.config.Normalizer.Keys(envelope, in.directory(ctx, w))
	g := w.gate(keys.Channel)
	if keys.Result != nil || g.Limits == (Limits{}) && g.WorkspaceLimits == (Limits{}) {
		return time.Time{}, nil
	}
	e, err := in.normalize(ctx, w, envelope)
	if err != nil {
		return time.Time{}, err
	}
	m := e.Message
	if g.kind = e.Kind; m == nil || m.Passive || is(m.Metadata.Passive) || g.command(m) != "" {
		return time.Time{}, nil
	}
	return in.Journal.Budgets.ExhaustedUntil(ctx, w.config.ID, keys.Dedupe, g.budgets(m))
}

// limitText tells a person that a limit is reached.
const limitText = "Sorry, I can't answer this now: the limit of questions is reached. Please ask again later."
