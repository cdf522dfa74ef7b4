package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/listing"
)

// runs are the flags of the commands about runs.
type runs struct {
	shared
	failed bool
	since  string
}

func runsCommand() *cobra.Command {
	r := &runs{}
	c := r.Command("runs", "Lists the runs of agents, and asks again or stops one", wrong(cobra.NoArgs), r.list)
	c.Example = "  parley runs --failed --since 1h\n  parley runs show 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b\n  parley runs retry 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	list := r.Command("list", "Lists the runs, the unfinished ones first", wrong(cobra.NoArgs), r.list)
	for _, one := range []*cobra.Command{c, list} {
		one.Flags().BoolVar(&r.failed, "failed", false, "only failed ones")
		one.Flags().StringVar(&r.since, "since", "", "only those that ended since then: 90m, 7d, 2w, 2026-11-27 or 2026-11-27T09:00")
	}
	c.AddCommand(list, r.Command("show RUN", "Shows a run with its attempts", wrong(cobra.ExactArgs(1)), r.show),
		r.Command("retry RUN", "Asks again for the messages of a failed run, in another run", wrong(cobra.ExactArgs(1)), r.retry),
		r.Command("stop RUN", "Ends an unfinished run, and tells its thread", wrong(cobra.ExactArgs(1)), r.stop))
	return c
}

func (r *runs) list(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	query := url.Values{}
	if r.failed {
		query.Set("failed", "true")
	}
	if r.since != "" {
		at, err := operator.Since(r.since, time.Now())
		if err != nil {
			return command.UsageError{Err: fmt.Errorf("--since %q %w", r.since, err)}
		}
		query.Set("since", at.Format(time.RFC3339))
	}
	page, err := client.Runs(ctx, query)
	switch {
	case err != nil:
		return err
	case r.JSON:
		return printItems(c.OutOrStdout(), page.Items)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tTHREAD\tAGENT\tSTATE\tTRIES\tAGE\tERROR")
	now := time.Now()
	for _, x := range page.Items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", x.ID, oneLine(string(x.Thread)), x.Agent, x.State, len(x.Attempts), age(now, x.BegunAt), cmp.Or(oneLine(x.Error), "-"))
	}
	if page.Next != nil && !r.Quiet {
		fmt.Fprintln(c.ErrOrStderr(), "there are more: see --failed and --since")
	}
	return w.Flush()
}

func (r *runs) show(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	x, err := client.Run(ctx, args[0])
	if err != nil {
		return err
	}
	return r.print(c.OutOrStdout(), x, func(out io.Writer) error { return printRun(out, x) })
}

// printRun prints a run with its attempts and its workstreams.
func printRun(out io.Writer, x listing.Run) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "run\t%s, %s\nthread\t%s\nagent\t%s\nbegun\t%s\n", x.ID, x.State, oneLine(string(x.Thread)), x.Agent, clock(&x.BegunAt))
	if x.Error != "" {
		fmt.Fprintf(w, "error\t%s\n", oneLine(x.Error))
	}
	for _, a := range x.Attempts {
		if a.Lost() {
			fmt.Fprintf(w, "attempt %d\tlost: %s\n", a.N, a.Error)
			continue
		}
		fmt.Fprintf(w, "attempt %d\t%s, %d ms, %d→%d tokens, %s\n", a.N, clock(&a.BegunAt), a.EndedAt.Sub(a.BegunAt).Milliseconds(), a.TokensIn, a.TokensOut,
			cmp.Or(oneLine(a.Error), a.Finish, "answered"))
	}
	for _, child := range x.Workstreams {
		fmt.Fprintf(w, "workstream\t%s\n", oneLine(child.String()))
	}
	return w.Flush()
}

func (r *runs) retry(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	x, err := client.RetryRun(ctx, args[0])
	if err != nil {
		return err
	}
	return r.print(c.OutOrStdout(), x, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "The %d messages of the run wait for another run.\n", x.Messages)
		return err
	})
}

func (r *runs) stop(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	x, err := client.StopRun(ctx, args[0])
	if err != nil {
		return err
	}
	return r.print(c.OutOrStdout(), x, func(out io.Writer) error { return printRun(out, x) })
}

// print prints a result as JSON, or in words.
func (r *runs) print(out io.Writer, x any, words func(io.Writer) error) error {
	if r.JSON {
		return printJSON(out, x)
	}
	return words(out)
}
