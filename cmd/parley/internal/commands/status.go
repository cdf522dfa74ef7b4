package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// watchEvery is the pause between two states of status --watch.
const watchEvery = 2 * time.Second

func statusCommand() *cobra.Command {
	var at target
	var asJSON, quiet, watch, ready bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Shows the state of the daemon, its workspaces and agents, and what waits for you",
		Long: `Shows the state of the daemon, its workspaces and agents, and what waits for you.

Exit status: 0 all is well, 3 a part does not work, 4 no daemon runs. With --ready, for the
health check of a container, it is 0 as long as the daemon takes messages.`,
		Example: "  parley status\n  parley status --json | jq .needs\n  parley status --quiet --ready",
		Args:    wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return operate(c, &at, func(ctx context.Context, client *operator.Client) error {
				show := func() (operator.Status, error) { return showStatus(ctx, displayOf(c), client, asJSON, quiet) }
				st, err := show()
				for watch && err == nil {
					select {
					case <-ctx.Done():
						return nil
					case <-time.After(watchEvery):
					}
					st, err = show()
				}
				return cmp.Or(err, wellness(st, ready))
			})
		},
	}
	at.Flags(c)
	jsonFlag(c, &asJSON)
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing, only set the exit status")
	c.Flags().BoolVar(&ready, "ready", false, "exit with 0 if the daemon takes messages, also if a workspace or an agent does not work")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "print the state again every two seconds, until Ctrl-C")
	return c
}

// showStatus prints the state.
func showStatus(ctx context.Context, out display, client *operator.Client, asJSON, quiet bool) (operator.Status, error) {
	st, err := client.Status(ctx)
	switch {
	case err != nil, quiet:
		return st, err
	case asJSON:
		return st, printJSON(out, st)
	}
	return st, printStatus(out, st, time.Now())
}

// wellness returns the error for the exit status of a state; nil if all is well, or if a daemon that takes messages
// is enough.
func wellness(st operator.Status, ready bool) error {
	switch {
	case !st.Running:
		return command.ExitError{Status: statusNoDaemon, Err: operator.ErrNoDaemon}
	case ready && !st.Ready:
		return command.ExitError{Status: statusDegraded, Err: errors.New("the daemon takes no messages")}
	case !ready && st.Degraded():
		return command.ExitError{Status: statusDegraded, Err: errors.New("a part of the daemon does not work")}
	}
	return nil
}

// printStatus prints a state in words.
func printStatus(out display, st operator.Status, now time.Time) error {
	fmt.Fprintf(out, "parley %s on %s%s; store %s %s%s\n", st.Version, st.Host, since(st, now), st.Store.Engine, size(st.Store.Bytes), out.paint(red, trouble(st.Store)))
	workspaces := out.table("WORKSPACE", "PLATFORM", "STATE", "SINCE", "LAST EVENT", "WAITING", "BEHIND", "DEAD", "ERROR")
	for _, s := range st.Workspaces {
		last := time.Time{}
		if s.LastEventAt != nil {
			last = *s.LastEventAt
		}
		workspaces.add(s.ID, s.Platform, state(s.State), age(now, s.Since), age(now, last), humanize.Comma(s.Waiting), humanize.Comma(s.Behind), humanize.Comma(s.Dead), oneLine(s.Error))
	}
	agents := out.table("AGENT", "KIND", "STATE", "RUNNING", "FIRST TOKEN", "LAST ERROR")
	for _, a := range st.Agents {
		first := "-"
		if a.FirstTokenMS > 0 {
			first = took(time.Duration(a.FirstTokenMS * float64(time.Millisecond)))
		}
		agents.add(a.ID, a.Kind, state(a.State), a.Running, first, oneLine(a.LastError))
	}
	if err := errors.Join(workspaces.end(), agents.end()); err != nil {
		return err
	}
	for _, a := range st.Agents {
		if len(a.Form) > 0 {
			fmt.Fprintf(out, "%s's server has refused other forms of requests: %s\n", a.ID, strings.Join(a.Form, "; "))
		}
	}
	for _, s := range st.Workspaces {
		if s.Warning != "" {
			fmt.Fprintln(out, out.paint(yellow, "Warning:")+" workspace "+s.ID+": "+s.Warning)
		}
	}
	for _, p := range st.Pauses {
		fmt.Fprintln(out, out.paint(yellow, "Paused:")+" "+pausedWords(p, now))
	}
	if n := st.Schedules; n.Failed > 0 {
		fmt.Fprintf(out, "Failed at their last time: %d of %s (parley schedules)\n", n.Failed, count(n.Total, "schedule"))
	}
	if words := needs(st.Needs); words != "" {
		fmt.Fprintln(out, out.paint(yellow, "Needs you:")+" "+words)
	}
	return nil
}

// since returns the words about the running daemon.
func since(st operator.Status, now time.Time) string {
	if !st.Running {
		return ", stopped"
	}
	return fmt.Sprintf(", up %s, configured %s ago", age(now, st.Since), age(now, st.ConfiguredAt))
}

func trouble(s operator.StoreStatus) string {
	if s.Error == "" {
		return ""
	}
	return " takes no messages: " + s.Error
}

// needs returns the words about what waits for an operator; empty for nothing.
func needs(n operator.Needs) string {
	var words []string
	for _, one := range []struct {
		n              int64
		thing, command string
	}{
		{n.Dead, "dead letter", "parley dead"},
		{n.UnknownDeliveries, "unknown delivery", "parley deliveries --state unknown"},
		{n.FailedDeliveries, "failed delivery", "parley deliveries --state failed"},
		{n.Approvals, "open question", "parley questions"},
		{n.FailedRuns, "failed run", "parley runs --failed"},
	} {
		if one.n == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", one.n, one.thing)
		if one.n > 1 {
			text = strings.Replace(text+"s", "ys", "ies", 1)
		}
		words = append(words, text+" ("+one.command+")")
	}
	return strings.Join(words, ", ")
}
