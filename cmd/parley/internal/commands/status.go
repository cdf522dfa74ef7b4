package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

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
				show := func() (operator.Status, error) { return showStatus(ctx, c.OutOrStdout(), client, asJSON, quiet) }
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
func showStatus(ctx context.Context, out io.Writer, client *operator.Client, asJSON, quiet bool) (operator.Status, error) {
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
func printStatus(out io.Writer, st operator.Status, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "parley %s on %s%s; store %s %.1f MB%s\n", st.Version, st.Host, since(st, now), st.Store.Engine, float64(st.Store.Bytes)/1e6, trouble(st.Store))
	fmt.Fprintln(w, "WORKSPACE\tPLATFORM\tSTATE\tSINCE\tLAST EVENT\tWAITING\tBEHIND\tDEAD\t")
	for _, s := range st.Workspaces {
		last := time.Time{}
		if s.LastEventAt != nil {
			last = *s.LastEventAt
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", s.ID, s.Platform, s.State, age(now, s.Since), age(now, last), s.Waiting, s.Behind, s.Dead, s.Error)
	}
	fmt.Fprintln(w, "AGENT\tKIND\tSTATE\tRUNNING\tFIRST TOKEN\tLAST ERROR\t")
	for _, a := range st.Agents {
		first := "-"
		if a.FirstTokenMS > 0 {
			first = fmt.Sprintf("%.1f s", a.FirstTokenMS/1000)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", a.ID, a.Kind, a.State, a.Running, first, cmp.Or(a.LastError, "-"))
	}
	for _, a := range st.Agents {
		if len(a.Form) > 0 {
			fmt.Fprintf(w, "%s's server has refused other forms of requests: %s\n", a.ID, strings.Join(a.Form, "; "))
		}
	}
	if n := st.Schedules; n.Failed > 0 {
		fmt.Fprintf(w, "Failed at their last time: %d of %d schedules (parley schedules)\n", n.Failed, n.Total)
	}
	if words := needs(st.Needs); words != "" {
		fmt.Fprintln(w, "Needs you: "+words)
	}
	return w.Flush()
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
