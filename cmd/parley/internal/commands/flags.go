package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/config"
)

// quietFlag adds the flag --quiet of a command that shows its progress.
func quietFlag(c *cobra.Command, quiet *bool) {
	c.Flags().BoolVarP(quiet, "quiet", "q", false, "show no progress")
}

// jsonFlag adds the flag --json of a command that prints one object.
func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print the result as JSON")
}

// printJSON prints one object on a line.
func printJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// printItems prints each item of a list as one JSON object a line.
func printItems[T any](to io.Writer, items []T) error {
	for _, item := range items {
		if err := printJSON(to, item); err != nil {
			return err
		}
	}
	return nil
}

// configFlag adds the flag --config. If it is not given, the command reads otherwise.
func configFlag(c *cobra.Command, path *string, otherwise string) {
	given := ""
	if otherwise == ifExists {
		given = os.Getenv("PARLEY_CONFIG")
	}
	c.Flags().StringVar(path, "config", given, "the configuration file (default "+otherwise+")")
	c.Flags().Lookup("config").DefValue = "" // the help shows no value of the environment
}

// ifExists names the file that a command reads without --config.
const ifExists = "$PARLEY_CONFIG, else " + config.File + ", if it exists"

// faults puts each fault of a configuration on its own line.
func faults(err error) error {
	if _, ok := errors.AsType[config.Faults](err); ok {
		return fmt.Errorf("the configuration has faults:\n%w", err)
	}
	return err
}

// wrong turns an error of a check of arguments into a UsageError.
func wrong(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			if c.HasParent() {
				err = fmt.Errorf("%w: the form is %s", err, c.UseLine())
			}
			return command.UsageError{Err: err}
		}
		return nil
	}
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }
