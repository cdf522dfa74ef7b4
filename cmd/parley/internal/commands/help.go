package commands

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/subosito/gotenv"

	"parley/cmd/internal/command"
)

// helpTopics are the texts of parley help TOPIC.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit status of a command means", Long: `The exit status of a command:

  0    done
  1    failed, or faults were found
  2    wrong use of the command line
  3    status: the daemon runs, and a part of it does not work
  4    no daemon runs, and the command needs one or its store
  5    chat --once: no answer came
  130  interrupted`},
		{Use: "environment", Short: "The environment variables that Parley reads", Long: `The environment variables that Parley reads:

  PARLEY_CONFIG       the configuration file of a command without --config
  PARLEY_TOKEN        the token of an operator, for a command with --url
  NO_COLOR            no colours, if it is not empty (https://no-color.org)
  TERM=dumb           no colours and no progress bar
  GOGC, GOMEMLIMIT    the settings of Go's garbage collector for the daemon
  PGPASSWORD …        what PostgreSQL's own programs read, for a PostgreSQL store
  HTTPS_PROXY …       the proxy of outgoing requests

A configuration may name further variables, as in ${SLACK_BOT_TOKEN}. --env-file FILE sets
variables that are not set yet, from lines such as NAME=value.`},
		{Use: "files", Short: "The files that Parley reads and writes", Long: `The files that Parley reads and writes, unless the configuration names others:

  parley.yaml           the configuration; it is optional. Without it, and without --config and
                        PARLEY_CONFIG, a command reads /etc/parley/parley.yaml if it exists
  workspaces/*.yaml     one file for each workspace
  data/parley.db        the journal, with -wal and -shm beside it while a daemon runs
  data/parley.db.lock   shows which process has the journal
  data/parley.sock      the socket of the operator API
  data/attachments/     the copies of attachments

Save the journal and the attachments with parley backup: a copy of parley.db alone is wrong
while a daemon runs.`},
	}
}

// documentation ends the help of each command.
const documentation = `
Documentation: README.md in the source; parley help exit-codes, environment or files
`

// commonFlags adds the flags of all commands to the root, and applies them before a command runs.
func commonFlags(root *cobra.Command) {
	var color, envFile string
	root.PersistentFlags().StringVar(&color, "color", "auto", "colours: auto, always or never")
	root.PersistentFlags().StringVar(&envFile, "env-file", "", "a file with environment variables, one NAME=value a line; those that are set already stay")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains([]string{"auto", "always", "never"}, color) {
			return command.UsageError{Err: fmt.Errorf("--color is %q, must be auto, always or never", color)}
		}
		if envFile != "" {
			if err := gotenv.Load(envFile); err != nil {
				return fmt.Errorf("--env-file: %w", err)
			}
		}
		switch color {
		case "always":
			return os.Setenv(forceColor, "1")
		case "never":
			return os.Setenv("NO_COLOR", "1")
		}
		return nil
	}
}

// forceColor is the variable that asks for colours where no terminal is, as other programs read it.
const forceColor = "CLICOLOR_FORCE"

// known is the check of the root's arguments: it names commands that are alike.
func known(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	if alike := root.SuggestionsFor(args[0]); len(alike) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(alike, " or "))
	}
	return command.UsageError{Err: err}
}
