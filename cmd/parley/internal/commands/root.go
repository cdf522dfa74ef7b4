// Package commands has the commands of parley: those that run and set up a daemon, and those that show and repair what is
// stored, by the operator API.
package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
)

// Main runs the command line of the process and ends the process with its exit status.
func Main() { command.Main("parley", execute) }

// execute runs one command line.
func execute(ctx context.Context, args []string) error {
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if _, usage := errors.AsType[command.UsageError](err); usage {
		return fmt.Errorf("%w (see parley --help)", err)
	}
	return err
}

// rootCommand returns the tree of all commands.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Lets an agent take part in the chats where people already are",
		Example: `  parley run
  parley status
  parley backup parley.tar.zst`,
		Version:       thisProgram().String(),
		Args:          known,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cobra.EnableCommandSorting = false
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().BoolP("version", "V", false, "print the version")
	root.SetUsageTemplate(root.UsageTemplate() + documentation)
	commonFlags(root)
	root.AddCommand(helpTopics()...)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.UsageError{Err: err} })
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"begin", "Begin:", []*cobra.Command{initCommand(), workspaceCommand(), agentCommand(), runCommand(), chatCommand(), checkCommand(), reloadCommand(), configCommand(), schemaCommand()}},
		{"look", "Look:", []*cobra.Command{statusCommand(), doctorCommand(), whyCommand(), threadsCommand(), searchCommand(), usageCommand(), tailCommand(), consoleCommand()}},
		{"repair", "Act and repair:", []*cobra.Command{runsCommand(), questionsCommand(), deliveriesCommand(), deadCommand(), schedulesCommand(), postCommand(), pauseCommand(), resumeCommand(), peopleCommand()}},
		{"store", "Store:", []*cobra.Command{backupCommand(), restoreCommand(), importCommand(), copyStoreCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(replayCommand(), versionCommand(), manCommand())
	completionCommand(root)
	for _, c := range root.Commands() {
		if c.HasSubCommands() && !c.Runnable() { // cobra shows the help, also after a wrong word
			c.Args, c.RunE = wrong(cobra.NoArgs), func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	completeValues(root)
	return root
}
