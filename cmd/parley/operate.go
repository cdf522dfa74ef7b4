package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/daemon"
	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// The exit statuses of an operator's commands, besides 0, 1 and 2.
const (
	statusDegraded = 3
	statusNoDaemon = 4
)

// operate calls do with a client of the daemon that runs with the configuration at path. Without a
// daemon, the client works on the store, and the command says so.
func operate(c *cobra.Command, path string, do func(context.Context, *operator.Client) error) (err error) {
	client, err := connect(c.Context(), path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if client.Stopped {
		fmt.Fprintln(c.ErrOrStderr(), "(daemon stopped)")
	}
	return do(c.Context(), client)
}

// connect returns a client of the operator API. The caller closes it.
func connect(ctx context.Context, path string) (*operator.Client, error) {
	conf, err := config.Load(path)
	if err != nil {
		return nil, faults(err)
	}
	client, err := daemon.Operate(ctx, conf, version+" ("+commit()+")")
	if errors.Is(err, operator.ErrNoDaemon) {
		err = command.ExitError{Status: statusNoDaemon, Err: err}
	}
	return client, err
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

// age returns a time as its distance from now, such as "12 min".
func age(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	switch d := now.Sub(at); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours())/24)
	}
}
