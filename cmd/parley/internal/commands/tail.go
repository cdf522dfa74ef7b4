package commands

import (
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
			if err := configured(c.Context(), client, workspace); err != nil {
				return at.Explain(err)
			}
			query := url.Values{}
			for name, value := range map[string]string{"workspace": workspace, "thread": thread} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if once {
				query.Set("follow", "false")
			}
			err = operator.Follow(c.Context(), client, "steps", query, func(s operator.Step) error {
				if asJSON {
					return printJSON(c.OutOrStdout(), s)
				}
				_, err := fmt.Fprintln(c.OutOrStdout(), stepLine(displayOf(c), s, time.Now()))
				return err
			})
			one := shared{thing: "thread", lister: "parley threads"}
			return at.Explain(one.absent(err, thread))
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
func stepLine(on display, s operator.Step, now time.Time) string {
	line := []string{on.paint(dim, clockMS(now, s.At)), s.Workspace, fmt.Sprintf("%-8s", s.What)}
	if s.Thread != "" {
		line = append(line, oneLine(s.Thread))
	}
	if s.Agent != "" {
		line = append(line, "→ "+s.Agent)
	}
	if s.Detail != "" {
		line = append(line, on.paint(stateStyles[s.Detail], oneLine(s.Detail)))
	}
	if s.MS > 0 {
		line = append(line, took(time.Duration(s.MS)*time.Millisecond))
	}
	return strings.Join(line, "  ")
}
