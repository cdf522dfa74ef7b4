package commands

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// shared are the flags of an operator's command with subcommands.
type shared struct {
	target
	JSON, Quiet bool
}

// action does the work of a command by the operator API.
type action func(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error

// Command returns a command with the shared flags.
func (s *shared) Command(use, short string, args cobra.PositionalArgs, do action) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(c *cobra.Command, args []string) error {
		return operate(c, &s.target, func(ctx context.Context, client *operator.Client) error { return do(ctx, c, client, args) })
	}}
	s.Flags(c)
	jsonFlag(c, &s.JSON)
	quietFlag(c, &s.Quiet)
	return c
}

// number reads the id of a row.
func number(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, command.UsageError{Err: fmt.Errorf("%q is no id: name a number of the list, such as 7", text)}
	}
	return id, nil
}
