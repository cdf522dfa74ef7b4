package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/operator"
)

func reloadCommand() *cobra.Command {
	var at target
	var asJSON, quiet bool
	c := &cobra.Command{
		Use:   "reload",
		Short: "Makes the running daemon read its configuration again, and prints the faults",
		Long: `Makes the running daemon read its configuration again. If the files have a fault, the last
good configuration stays, each fault is printed as file:line: key: words, and the exit
status is 1.`,
		Example: "  parley reload\n  parley reload --json",
		Args:    wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, _, err := dial(c.Context(), &at) // the daemon tells the faults
			if err != nil {
				return err
			}
			defer client.Close()
			return at.Explain(reload(c.Context(), c, client, asJSON, quiet))
		},
	}
	at.Flags(c)
	jsonFlag(c, &asJSON)
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only faults")
	return c
}

func reload(ctx context.Context, c *cobra.Command, client *operator.Client, asJSON, quiet bool) error {
	result, err := client.Reload(ctx)
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	switch {
	case asJSON:
		err = printJSON(out, result)
	case !result.Applied:
		for _, f := range result.Faults {
			fmt.Fprintln(out, f)
		}
	case quiet:
	case len(result.Changed) == 0:
		fmt.Fprintln(out, "the configuration was read again; nothing has changed")
	default:
		fmt.Fprintln(out, "changed: "+strings.Join(result.Changed, ", "))
	}
	if len(result.Restart) > 0 && !asJSON {
		fmt.Fprintln(c.ErrOrStderr(), "at the next start only: "+strings.Join(result.Restart, ", "))
	}
	if err == nil && !result.Applied {
		err = errors.New("the last good configuration stays")
	}
	return err
}
