package commands

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/listing"
)

// runs are the flags of the commands about runs.
type runs struct {
	shared
	failed              bool
	state, agent, since string
}

func runsCommand() *cobra.Command {
	r := &runs{}
	r.thing, r.lister = "run", "parley runs"
	c := r.Command("runs", "Lists the runs of agents, and asks again or stops one", wrong(cobra.NoArgs), r.list)
	c.Example = "  parley runs --failed --since 1h\n  parley runs show 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b\n  parley runs retry 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	list := r.Command("list", "Lists the runs, the unfinished ones first", wrong(cobra.NoArgs), r.list)
	r.ListFlags(c, list)
	for _, one := range []*cobra.Command{c, list} {
		one.Flags().BoolVar(&r.failed, "failed", false, "only failed ones")
		one.Flags().StringVar(&r.state, "state", "", "only those in this state: "+strings.Join(listing.RunStates(), ", "))
		one.Flags().StringVar(&r.agent, "agent", "", "only those of this agent")
		one.Flags().StringVar(&r.since, "since", "", "only those that ended since then: 90m, 7d, 2w, 2026-11-27 or 2026-11-27T09:00")
	}
	c.AddCommand(list, r.Command("show RUN", "Shows a run with its attempts", wrong(cobra.ExactArgs(1)), r.show),
		r.Command("retry RUN", "Asks again for the messages of a failed run, in another run", wrong(cobra.ExactArgs(1)), r.retry),
		r.Command("stop RUN", "Ends an unfinished run, and tells its thread", wrong(cobra.ExactArgs(1)), r.stop))
	return c
}

func (r *runs) list(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	query := chosen(map[string]string{"workspace": r.workspace, "state": r.state, "agent": r.agent})
	if r.failed {
		query.Set("state", "failed")
	}
	if r.since != "" {
		at, err := operator.Since(r.since, time.Now())
		if err != nil {
			return command.UsageError{Err: fmt.Errorf("--since %q %w", r.since, err)}
		}
		query.Set("since", at.Format(time.RFC3339))
	}
	now := time.Now()
	return list[operator.Run]{
		query: query, read: client.Runs, header: []string{"RUN", "CHANNEL", "AGENT", "STATE", "TRIES", "AGE", "THREAD", "ERROR"},
		row: func(x operator.Run) []any {
			return []any{x.ID, place(x.ChannelName, x.Channel), x.Agent, state(x.State), len(x.Attempts), age(now, x.BegunAt), oneLine(string(x.Thread)), oneLine(x.Error)}
		},
	}.show(ctx, c, client, &r.shared)
}

func (r *runs) show(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	x, err := client.Run(ctx, args[0])
	if err != nil {
		return err
	}
	return r.print(c, x, func(on display) error { return printRun(on, x, time.Now()) })
}

// printRun prints a run with its attempts and its workstreams.
func printRun(on display, x operator.Run, now time.Time) error {
	t := on.facts()
	t.fact("run", x.ID)
	t.fact("state", state(x.State))
	t.fact("channel", place(x.ChannelName, x.Channel))
	t.fact("thread", oneLine(string(x.Thread)))
	t.fact("agent", x.Agent)
	t.fact("begun", clock(now, x.BegunAt))
	if x.TraceID != "" {
		t.fact("trace", oneLine(cmp.Or(x.TraceLink, x.TraceID)))
	}
	if x.Error != "" {
		t.fact("error", cell{oneLine(x.Error), red})
	}
	for _, a := range x.Attempts {
		words := "lost: " + oneLine(a.Error)
		if !a.Lost() {
			words = fmt.Sprintf("%s, %s, %s in and %s out, %s", clock(now, a.BegunAt), took(a.EndedAt.Sub(a.BegunAt)), count(a.TokensIn, "token"), count(a.TokensOut, "token"),
				cmp.Or(oneLine(a.Error), a.Finish, "answered"))
		}
		t.fact(fmt.Sprintf("attempt %d", a.N), words)
	}
	for _, child := range x.Workstreams {
		t.fact("workstream", oneLine(child.String()))
	}
	return t.end()
}

func (r *runs) retry(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	x, err := client.RetryRun(ctx, args[0])
	if err != nil {
		return err
	}
	return r.print(c, x, func(on display) error {
		_, err := fmt.Fprintf(on, "Asked again: %s of the run %s for another run.\n", count(x.Messages, "message"), verb(x.Messages, "waits", "wait"))
		return err
	})
}

func (r *runs) stop(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	x, err := client.StopRun(ctx, args[0])
	if err != nil {
		return err
	}
	return r.print(c, x, func(on display) error { return printRun(on, operator.Run{Run: x}, time.Now()) })
}
