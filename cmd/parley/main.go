// Command parley lets an agent take part in the chats where people already are.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit statuses besides 0.
const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a wrong command line.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:]))
}

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, args []string) int {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Lets an agent take part in the chats where people already are",
		Args:  wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return usageError{errors.New("a command is needed: run, replay, check, copy-store or version")}
		},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(), replayCommand(), checkCommand(), copyStoreCommand(), versionCommand())
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "parley: %v\nSee parley --help.\n", err)
		return exitUsage
	}
	fmt.Fprintf(os.Stderr, "parley: %v\n", err)
	return exitFailure
}

// wrong turns an error of a check of arguments into a usageError.
func wrong(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
