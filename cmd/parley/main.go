// Command parley lets an agent take part in the chats where people already are.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
)

func main() { command.Main("parley", execute) }

// execute runs one command line.
func execute(ctx context.Context, args []string) error {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Lets an agent take part in the chats where people already are",
		Example: `  parley run
  parley status
  parley backup parley.tar.zst`,
		Version: thisProgram().String(),
		Args:    known,
		RunE: func(c *cobra.Command, _ []string) error {
			return command.UsageError{Err: errors.New("a command is needed, such as run, status, chat or check")}
		},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().BoolP("version", "V", false, "print the version")
	root.SetUsageTemplate(root.UsageTemplate() + documentation)
	commonFlags(root)
	root.AddCommand(helpTopics()...)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.UsageError{Err: err} })
	root.AddCommand(runCommand(), replayCommand(), checkCommand(), copyStoreCommand(), importCommand(), versionCommand())
	root.AddCommand(deadCommand(), deliveriesCommand(), statusCommand(), whyCommand(), runsCommand(), questionsCommand())
	root.AddCommand(chatCommand(), doctorCommand(), initCommand(), configCommand(), schemaCommand())
	root.AddCommand(backupCommand(), restoreCommand())
	root.AddCommand(consoleCommand())
	root.AddCommand(reloadCommand(), tailCommand(), threadsCommand())
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if _, usage := errors.AsType[command.UsageError](err); usage {
		return fmt.Errorf("%w (see parley --help)", err)
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
