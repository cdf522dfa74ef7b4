package commands

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/operator"
)

// schedules are the flags of the commands about schedules.
type schedules struct {
	shared
	note string
}

func schedulesCommand() *cobra.Command {
	s := &schedules{}
	s.thing, s.lister = "schedule", "parley schedules"
	c := s.Command("schedules", "Lists the schedules, and runs, pauses or resumes one", wrong(cobra.NoArgs), s.list)
	c.Example = "  parley schedules\n  parley schedules run morning\n  parley schedules pause acme/morning --note 'holidays'"
	list := s.Command("list", "Lists the schedules, with their next and their last time", wrong(cobra.NoArgs), s.list)
	s.ListFlags(c, list)
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
	now := time.Now()
	return list[operator.Schedule]{
		read: client.Schedules, keep: func(x operator.Schedule) bool { return s.workspace == "" || x.Workspace == s.workspace },
		header: []string{"ID", "WORKSPACE", "NEXT", "LAST", "RESULT", "RUN", "ERROR"},
		row: func(x operator.Schedule) []any {
			next := cell{text: inZone(now, x.NextAt, x.TimeZone)}
			if x.Paused {
				next = state("paused")
			}
			return []any{x.ID, x.Workspace, next, inZone(now, x.LastAt, x.TimeZone), state(string(x.LastResult)), x.LastRun, oneLine(x.LastError)}
		},
	}.show(ctx, c, client, &s.shared)
}

// inZone returns a time of a schedule in the schedule's own time zone, with its name; in that of this machine if the schedule has none.
func inZone(now time.Time, at *time.Time, name string) string {
	if at == nil {
		return "-"
	}
	zone, err := time.LoadLocation(name)
	if name == "" || err != nil {
		return clock(now, *at)
	}
	return clock(now.In(zone), *at) + " " + name
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

// find returns the workspace of the only schedule with an id.
func (s *schedules) find(ctx context.Context, client *operator.Client, id string) (workspace, same string, err error) {
	var found []string
	_, err = eachItem(ctx, url.Values{}, client.Schedules, func(x operator.Schedule) (bool, error) {
		if x.ID == id {
			found = append(found, x.Workspace)
		}
		return true, nil
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
