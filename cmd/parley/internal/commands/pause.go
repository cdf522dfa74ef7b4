package commands

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/operator"
	"parley/ingest"
)

// pause are the flags of the command pause.
type pause struct {
	shared
	length string
	say    string
	now    bool
}

func pauseCommand() *cobra.Command {
	p := &pause{}
	c := p.Command("pause [WORKSPACE|WORKSPACE:CHANNEL|agent:ID]", "Lets nobody ask the agents, until parley resume", wrong(cobra.MaximumNArgs(1)), p.begin)
	c.Long = `Lets nobody ask an agent in the scope; without one, nobody at all. Messages are stored as context, and askers are told once. Commands
and answers to questions go on. Schedules count as missed, and posts of programs are refused. Runs that work end orderly, or with --now
at once.`
	c.Example = "  parley pause acme --for 2h --say 'Back at four.'\n  parley pause agent:coder --now\n  parley resume acme"
	c.Flags().StringVar(&p.length, "for", "", "resume after this time, such as 30m, 2h or 7d")
	c.Flags().StringVar(&p.say, "say", "", "what askers are told")
	c.Flags().BoolVar(&p.now, "now", false, "stop the runs that work there")
	return c
}

func (p *pause) begin(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	n := operator.NewPause{For: p.length, Say: p.say, Now: p.now}
	if len(args) > 0 {
		n.Scope = args[0]
	}
	made, err := client.Pause(ctx, n)
	switch {
	case err != nil:
		return err
	case p.JSON:
		return printJSON(c.OutOrStdout(), made)
	}
	words := "Paused: " + pausedWords(made.Pause, time.Now()) + "."
	if made.Stopped > 0 {
		words += " Stopped: " + count(int64(made.Stopped), "run") + "."
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), words)
	return err
}

// pausedWords describe a pause.
func pausedWords(p ingest.Pause, now time.Time) string {
	words := cmp.Or(p.Scope, "everything")
	if !p.Until.IsZero() {
		words += " until " + clock(now, p.Until)
	}
	return words + ", by " + p.By
}

func resumeCommand() *cobra.Command {
	s := &shared{}
	c := s.Command("resume [WORKSPACE|WORKSPACE:CHANNEL|agent:ID]", "Ends the pause of exactly this scope", wrong(cobra.MaximumNArgs(1)),
		func(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
			scope := ""
			if len(args) > 0 {
				scope = args[0]
			}
			_, err := client.Resume(ctx, scope)
			switch {
			case err != nil:
				return err
			case s.JSON:
				return printJSON(c.OutOrStdout(), map[string]string{"scope": scope})
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), "Resumed: "+cmp.Or(scope, "everything")+".")
			return err
		})
	c.Example = "  parley resume acme\n  parley resume acme:C06RY3YBSLE\n  parley resume agent:coder"
	return c
}
