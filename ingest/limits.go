package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/budgets"
)

// Limits bound the runs that messages ask for, and the tokens of the runs of a day. A zero Rate and 0 tokens are no bound.
type Limits struct {
	RunsPerUser      Rate `yaml:"runs_per_user"` // by sender_id
	RunsPerWorkspace Rate `yaml:"runs_per_workspace"`
	// TokensPerUser and TokensPerWorkspace are of the whole workspace; a channel has none of its own.
	TokensPerUser      int `yaml:"tokens_per_user"` // by sender_id
	TokensPerWorkspace int `yaml:"tokens_per_workspace"`
}

// Validate returns every fault, by key.
func (l Limits) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(l.TokensPerUser >= 0, "tokens_per_user", "must be 0 or a number of tokens for a day, such as 200000")
	faults.Check(l.TokensPerWorkspace >= 0, "tokens_per_workspace", "must be 0 or a number of tokens for a day, such as 2000000")
	return faults
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

// budgets returns the counters of the run that a message asks for; none without limits. The
// first one is its sender's, and remembers that the sender was told. Those of a sender come
// before those of all, and a channel's before the workspace's, so that two messages never lock
// counters in opposite orders.
func (s Settings) budgets(m *event.Message, at time.Time) (list []budgets.Budget) {
	sender := cmp.Or(m.LimitedAs, m.Metadata.SenderID)
	add := func(r Rate, counter string, bounded bool) {
		b := budgets.Budget{Name: budgets.Name(r.Channel + " " + counter), Per: r.Per}
		if bounded {
			b.Most = int64(r.Runs)
		}
		if r.Runs > 0 {
			list = append(list, b)
		}
	}
	user, all := s.Limits.RunsPerUser, s.Limits.RunsPerWorkspace
	ownTokens, allTokens := s.Tokens.Of(sender, at)
	if user.Runs == 0 {
		add(all, "told "+sender, false)
	}
	if user.Runs == 0 && all.Runs == 0 && len(ownTokens) == 0 && len(allTokens) > 0 {
		list = append(list, budgets.Budget{Name: budgets.Name(" told " + sender), Until: allTokens[0].Until})
	}
	add(user, "by "+sender, true)
	if user.Channel != "" {
		add(s.WorkspaceLimits.RunsPerUser, "by "+sender, false)
	}
	list = append(list, ownTokens...)
	add(all, "all", true)
	if all.Channel != "" {
		add(s.WorkspaceLimits.RunsPerWorkspace, "all", false)
	}
	return append(list, allTokens...)
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
	return in.Journal.Budgets.ExhaustedUntil(ctx, w.config.ID, keys.Dedupe, g.budgets(m, in.Now()))
}

// overText returns the words for a person about the limit that is reached. Those of tokens name the end of the day.
func (g gate) overText() string { return "Sorry, I can't answer this now: " + spentText(g.ends) }

// unpaidText returns the words in a thread whose agent cannot go on by itself.
func (g gate) unpaidText() string { return "I was to go on by myself now, but " + spentText(g.ends) }

// spentText names the limit that is reached: of tokens until a time, or of questions if the time is zero.
func spentText(ends time.Time) string {
	if ends.IsZero() {
		return "the limit of questions is reached. Please ask again later."
	}
	return fmt.Sprintf("today's limit of tokens is reached. Please ask again after %s (%s).", ends.Format("2 January, 15:04"), ends.Location())
}
