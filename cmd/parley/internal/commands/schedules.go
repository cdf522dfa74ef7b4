package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/operator"
)

// schedules are the flags of the commands about schedules.
type schedules struct {
	shared
	limit int
	note  string
}

func schedulesCommand() *cobra.Command {
	s := &schedules{}
	c := s.Command("schedules", "Lists the schedules, and runs, pauses or resumes one", wrong(cobra.NoArgs), s.list)
	c.Example = "  parley schedules\n  parley schedules run morning\n  parley schedules pause acme/morning --note 'holidays'"
	list := s.Command("list", "Lists the schedules, with their next and their last time", wrong(cobra.NoArgs), s.list)
	for _, one := range []*cobra.Command{c, list} {
		one.Flags().IntVar(&s.limit, "limit", 100, "at most this many")
	}
	c.AddCommand(list)
	for _, one := range []struct{ name, short, said string }{
		{"run", "Lets a schedule ask now", "The agent is asked now."},
		{"pause", "Lets a schedule ask no more, until it is resumed", "The schedule is paused."},
		{"resume", "Lets a paused schedule ask again", "The schedule asks again."},
	} {
		change := s.Command(one.name+" [WORKSPACE/]ID", one.short, wrong(cobra.ExactArgs(1)),
			func(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
				return s.change(ctx, c, client, args[0], one.name, one.said)
			})
		change.Flags().StringVar(&s.note, "note", "", "why, for the audit")
		c.AddCommand(change)
	}
	return c
}

func (s *schedules) list(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	out := c.OutOrStdout()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !s.JSON {
		fmt.Fprintln(w, "WORKSPACE\tID\tNEXT\tLAST\tRESULT\tRUN\tERROR")
	}
	err := eachPage(ctx, s.limit, url.Values{}, client.Schedules, func(items []operator.Schedule) error {
		if s.JSON {
			return printItems(out, items)
		}
		for _, x := range items {
			next := moment(x.NextAt)
			if x.Paused {
				next = "paused"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Workspace, x.ID, next, moment(x.LastAt), cmp.Or(string(x.LastResult), "-"), cmp.Or(x.LastRun, "-"), cmp.Or(oneLine(x.LastError), "-"))
		}
		return nil
	})
	return errors.Join(err, w.Flush())
}

// moment returns a time in a cell.
func moment(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format("2006-01-02 15:04 UTC")
}

// change changes the schedule with an id, which may have its workspace before it.
func (s *schedules) change(ctx context.Context, c *cobra.Command, client *operator.Client, ref, change, said string) error {
	workspace, id, whole := strings.Cut(ref, "/")
	if !whole {
		var err error
		if workspace, id, err = s.find(ctx, client, ref); err != nil {
			return err
		}
	}
	made, err := client.ChangeSchedule(ctx, workspace, id, change, s.note)
	switch {
	case err != nil:
		return err
	case s.JSON:
		return printJSON(c.OutOrStdout(), made)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), said)
	return err
}

// allSchedules is more than a store has.
const allSchedules = 1_000_000

// find returns the workspace of the only schedule with an id.
func (s *schedules) find(ctx context.Context, client *operator.Client, id string) (workspace, same string, err error) {
	var found []string
	err = eachPage(ctx, allSchedules, url.Values{}, client.Schedules, func(items []operator.Schedule) error {
		for _, x := range items {
			if x.ID == id {
				found = append(found, x.Workspace)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return "", "", err
	case len(found) == 0:
		return "", "", fmt.Errorf("there is no schedule %q: see parley schedules", id)
	case len(found) > 1:
		return "", "", fmt.Errorf("several workspaces have a schedule %q: name one, such as %s/%s", id, found[0], id)
	}
	return found[0], id, nil
}
