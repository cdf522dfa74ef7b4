package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// used are the flags of the command that lists what agents have used.
type used struct {
	shared
	by, since string
}

func usageCommand() *cobra.Command {
	u := &used{}
	c := u.Command("usage", "Lists what agents have done and used: questions, answers, minutes and tokens", wrong(cobra.NoArgs), u.list)
	c.Long = c.Short + `.

A question counts when its run has ended, on that day in the time zone of its workspace, for the person whose
question it was or led to it. Minutes are those of the agents' work. Tokens are - if no agent has
reported any. The sums stay for 400 days; --since 7d is today and the six days before.`
	c.Example = "  parley usage\n  parley usage --by person --since 30d\n  parley usage --by day --workspace acme --json"
	c.Flags().StringVar(&u.by, "by", "agent", "what has a row: "+strings.Join(operator.UsageBys(), ", "))
	c.Flags().StringVar(&u.since, "since", "7d", "from that day on: 24h, 7d, 2w or 2026-11-27")
	u.ListFlags(c)
	return c
}

func (u *used) list(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	if !slices.Contains(operator.UsageBys(), u.by) {
		return command.UsageError{Err: fmt.Errorf("--by %q must be one of %s", u.by, strings.Join(operator.UsageBys(), ", "))}
	}
	if _, err := operator.UsageSince(u.since, time.Now()); err != nil {
		return command.UsageError{Err: fmt.Errorf("--since %q %w", u.since, err)}
	}
	header := []string{strings.ToUpper(u.by)}
	if u.by == "channel" {
		header = append(header, "WORKSPACE")
	}
	if u.by == "person" {
		header = append(header, "NAME")
	}
	return list[operator.Used]{
		query: chosen(map[string]string{"by": u.by, "since": u.since, "workspace": u.workspace}), read: client.Usage,
		header: append(header, "QUESTIONS", "ANSWERS", "FAILED", "MINUTES", "TOKENS IN", "TOKENS OUT"),
		row: func(x operator.Used) []any {
			row := []any{oneLine(x.Key)}
			switch u.by {
			case "channel":
				row = []any{place(x.Name, x.Key), x.Workspace}
			case "person":
				row = append(row, oneLine(x.Name))
			}
			return append(row, humanize.Comma(x.Questions), humanize.Comma(x.Answers), humanize.Comma(x.Failures), fmt.Sprintf("%.1f", x.Minutes), tokens(x.TokensIn), tokens(x.TokensOut))
		},
	}.show(ctx, c, client, &u.shared)
}

// tokens returns a number of tokens in words, or a dash if no agent has reported it.
func tokens(n *int64) string {
	if n == nil {
		return "-"
	}
	return humanize.Comma(*n)
}
