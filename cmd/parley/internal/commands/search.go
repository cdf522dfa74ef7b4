package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// searches are the flags of the command that searches.
type searches struct {
	shared
	person, since string
}

func searchCommand() *cobra.Command {
	s := &searches{}
	c := s.Command("search TEXT", "Finds the messages that have each word of a text", wrong(cobra.MinimumNArgs(1)), s.search)
	c.Long = `Finds the messages that have each word of a text, the last recorded first.

parley why and parley threads show take the id of a message that it finds.`
	c.Example = "  parley search valve\n  parley search 'watering plan' --workspace acme --person Nora --since 7d"
	s.ListFlags(c)
	c.Flags().StringVar(&s.person, "person", "", "only those by this person: a part of the name, or the id")
	c.Flags().StringVar(&s.since, "since", "", "only those since then: 90m, 7d, 2w, 2026-11-27 or 2026-11-27T09:00")
	return c
}

func (s *searches) search(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	query := chosen(map[string]string{"q": strings.Join(args, " "), "workspace": s.workspace})
	if s.since != "" {
		at, err := operator.Since(s.since, time.Now())
		if err != nil {
			return command.UsageError{Err: fmt.Errorf("--since %q %w", s.since, err)}
		}
		query.Set("since", at.Format(time.RFC3339))
	}
	now, person := time.Now(), strings.ToLower(s.person)
	return list[operator.FoundMessage]{
		query: query, read: client.SearchMessages,
		keep: func(m operator.FoundMessage) bool {
			return strings.Contains(strings.ToLower(m.Sender), person) || strings.EqualFold(m.SenderID, person)
		},
		header: []string{"MESSAGE", "SENT", "WORKSPACE", "CHANNEL", "BY", "TEXT"},
		row: func(m operator.FoundMessage) []any {
			return []any{m.ID, clock(now, m.SentAt), m.Workspace, place(m.ChannelName, m.Channel), oneLine(m.Sender), oneLine(m.Content)}
		},
	}.show(ctx, c, client, &s.shared)
}
