package commands

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// configFlag adds the flag --config. If it is not given, the command reads otherwise.
func configFlag(c *cobra.Command, path *string, otherwise string) {
	given := ""
	if otherwise == ifExists {
		given = cmp.Or(os.Getenv("PARLEY_CONFIG"), installed())
	}
	c.Flags().StringVar(path, "config", given, "the configuration file (default "+otherwise+")")
	c.Flags().Lookup("config").DefValue = "" // the help shows no value of the environment
}

// systemConfig is the configuration of a machine on which a package has installed Parley.
var systemConfig = "/etc/parley/" + config.File

// ifExists names the file that a command reads without --config.
const ifExists = "$PARLEY_CONFIG, else " + config.File + " here, else /etc/parley/" + config.File + ", if it exists"

// installed returns systemConfig if it exists and the working directory has no configuration; else nothing. A file in a folder that the user can't enter
// exists, so that the command says that it can't be read.
func installed() string {
	if _, err := os.Stat(config.File); err == nil {
		return ""
	}
	if _, err := os.Stat(systemConfig); err != nil && !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	return systemConfig
}

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
