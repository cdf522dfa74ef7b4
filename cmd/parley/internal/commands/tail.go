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

func tailCommand() *cobra.Command {
	var at target
	var workspace, thread string
	var asJSON, once bool
	c := &cobra.Command{
		Use:   "tail",
		Short: "Shows the steps of messages through the daemon as they come, without their texts",
		Long: `Shows the last steps of messages through the daemon, and then each step as it comes:
received, decided, turn, attempt, answered and delivery. It never shows a text of a person.
THREAD is the UUID or the key of a thread.`,
		Example: "  parley tail --workspace acme\n  parley tail --json | jq -r .what",
		Args:    wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, found, err := dial(c.Context(), &at)
			if err != nil {
				return err
			}
			defer client.Close()
			warn(c, found)
			query := url.Values{}
			for name, value := range map[string]string{"workspace": workspace, "thread": thread} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if once {
				query.Set("follow", "false")
			}
			return at.Explain(operator.Follow(c.Context(), client, "steps", query, func(s operator.Step) error {
				if asJSON {
					return printJSON(c.OutOrStdout(), s)
				}
				_, err := fmt.Fprintln(c.OutOrStdout(), stepLine(s))
				return err
			}))
		},
	}
	at.Flags(c)
	jsonFlag(c, &asJSON)
	c.Flags().StringVar(&workspace, "workspace", "", "only the steps of this workspace")
	c.Flags().StringVar(&thread, "thread", "", "only the steps of this thread")
	c.Flags().BoolVar(&once, "once", false, "show the last steps, and do not wait for more")
	return c
}

// stepLine returns a step in one line.
func stepLine(s operator.Step) string {
	line := []string{s.At.Local().Format("15:04:05.000"), s.Workspace, fmt.Sprintf("%-8s", s.What)}
	if s.Thread != "" {
		line = append(line, s.Thread)
	}
	if s.Agent != "" {
		line = append(line, "→ "+s.Agent)
	}
	if s.Detail != "" {
		line = append(line, s.Detail)
	}
	if s.MS > 0 {
		line = append(line, (time.Duration(s.MS) * time.Millisecond).String())
	}
	return strings.Join(line, "  ")
}

// eachPage calls show with each page of a list, until there are limit items or the list ends.
func eachPage[T any](ctx context.Context, limit int, query url.Values, read func(context.Context, url.Values) (operator.List[T], error), show func([]T) error) error {
	for left := limit; left > 0; {
		query.Set("limit", fmt.Sprint(min(left, 100)))
		page, err := read(ctx, query)
		if err != nil {
			return err
		}
		if err := show(page.Items); err != nil || page.Next == nil {
			return err
		}
		left -= len(page.Items)
		query.Set("before", *page.Next)
	}
	return nil
}
