package cmdline

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// Shared are the flags of an operator's command with subcommands.
type Shared struct {
	Target
	JSON, Quiet bool
}

// Action does the work of a command by the operator API.
type Action func(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error

// Command returns a command with the shared flags.
func (s *Shared) Command(use, short string, args cobra.PositionalArgs, do Action) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(c *cobra.Command, args []string) error {
		return Operate(c, &s.Target, func(ctx context.Context, client *operator.Client) error { return do(ctx, c, client, args) })
	}}
	s.Flags(c)
	JSONFlag(c, &s.JSON)
	QuietFlag(c, &s.Quiet)
	return c
}

// Number reads the id of a row.
func Number(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, command.UsageError{Err: fmt.Errorf("%q is no id: name a number of the list, such as 7", text)}
	}
	return id, nil
}
