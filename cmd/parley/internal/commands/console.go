package commands

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/operator"
)

func consoleCommand() *cobra.Command {
	var at target
	var asJSON, print bool
	c := &cobra.Command{
		Use:     "console",
		Short:   "Opens the console of the running daemon in a browser, and logs you in",
		Example: "  parley console\n  ssh -L 8485:127.0.0.1:8485 server    # it stays open; in it:\n  parley console --print",
		Args:    wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return operate(c, &at, func(ctx context.Context, client *operator.Client) error {
				door, err := client.Console(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), door)
				}
				if !print && browse(ctx, door.URL) == nil {
					fmt.Fprintln(c.OutOrStdout(), "The browser opens the console.")
					return nil
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), door.URL)
				return err
			})
		},
	}
	at.Flags(c)
	jsonFlag(c, &asJSON)
	c.Flags().BoolVar(&print, "print", false, "print the address; it is valid once, for one minute")
	return c
}

// browse opens an address in the browser of this machine's user. The address is in a file that only
// the user can read, because other users of the machine see the arguments of a command. The file
// stays, since nobody tells when the browser has read it; its ticket is valid once, for one minute.
func browse(ctx context.Context, url string) error {
	file, err := os.CreateTemp("", "parley-console-*.html")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, `<!doctype html><meta http-equiv="refresh" content="0; url=%s">`, html.EscapeString(url))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	return exec.CommandContext(ctx, name, file.Name()).Run()
}
