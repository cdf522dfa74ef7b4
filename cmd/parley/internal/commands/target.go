package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

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

// target names the daemon of a command: that of a configuration, or one at an address.
type target struct {
	Config, URL string // the path of the configuration; empty without an address
}

// Flags adds the flags that name the daemon.
func (t *target) Flags(c *cobra.Command) {
	configFlag(c, &t.Config, ifExists)
	t.URLFlag(c)
}

// URLFlag adds the flag --url.
func (t *target) URLFlag(c *cobra.Command) {
	c.Flags().StringVar(&t.URL, "url", "", "the address of operator.listen of another machine's daemon; PARLEY_TOKEN is your token there")
}

// tokenName is the variable with the token of an operator.
const tokenName = "PARLEY_TOKEN"

// remote returns a client of the daemon at the address; nil without an address.
func (t *target) remote() (*operator.Client, error) {
	if t.URL == "" {
		return nil, nil
	}
	u, err := url.Parse(t.URL)
	switch token := os.Getenv(tokenName); {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "":
		return nil, command.UsageError{Err: errors.New("--url must be like https://parley.example:8486, without a path")}
	case token == "":
		return nil, command.UsageError{Err: errors.New("--url needs the token of an operator in the variable " + tokenName)}
	default:
		return operator.DialURL(strings.TrimSuffix(t.URL, "/"), token), nil
	}
}

// Explain adds to the error of a command what to do about it.
func (t *target) Explain(err error) error {
	if refused, ok := errors.AsType[*operator.Error](err); ok && refused.Status == http.StatusUnauthorized {
		return fmt.Errorf("the daemon at %s knows no operator with the token in %s", t.URL, tokenName)
	}
	if broken, ok := errors.AsType[*url.Error](err); ok && t.URL != "" && !errors.Is(err, context.Canceled) {
		return command.ExitError{Status: statusNoDaemon, Err: fmt.Errorf("no daemon answers at %s: %w", t.URL, broken.Err)}
	}
	return err
}

// operate calls do with a client of the target's daemon. Without a daemon, the client works on the store, and the
// command says so.
func operate(c *cobra.Command, t *target, do func(context.Context, *operator.Client) error) (err error) {
	client, err := t.remote()
	if client == nil && err == nil {
		client, err = connect(c, t.Config)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if client.Stopped {
		fmt.Fprintln(c.ErrOrStderr(), "(daemon stopped)")
	}
	return t.Explain(do(c.Context(), client))
}

// connect returns a client of the operator API. The caller closes it. If the files have faults, the client is one of the running
// daemon, which needs them only at its next start or reload; without a daemon the faults are the error.
func connect(c *cobra.Command, path string) (*operator.Client, error) {
	conf, found := config.Read(path)
	if len(found) > 0 {
		client, err := operator.Dial(c.Context(), conf.Socket())
		if errors.Is(err, operator.ErrNoDaemon) {
			return nil, faults(found)
		}
		if err == nil {
			warn(c, found)
		}
		return client, err
	}
	client, err := daemon.Operate(c.Context(), conf, release())
	if errors.Is(err, operator.ErrNoDaemon) {
		err = command.ExitError{Status: statusNoDaemon, Err: err}
	}
	return client, err
}

// warn prints the faults of the files as warnings, for a command that goes on with the running daemon. With --quiet it prints none.
func warn(c *cobra.Command, found config.Faults) {
	if quiet, _ := c.Flags().GetBool("quiet"); quiet { // false without the flag
		return
	}
	for _, f := range found {
		f.Words = "warning: " + f.Words
		fmt.Fprintln(c.ErrOrStderr(), f)
	}
}

// dial returns a client of the running daemon for a command that needs one, and the faults of the files.
func dial(ctx context.Context, t *target) (*operator.Client, config.Faults, error) {
	if client, err := t.remote(); client != nil || err != nil {
		return client, nil, err
	}
	conf, found := config.Read(t.Config)
	client, err := operator.Dial(ctx, conf.Socket())
	switch {
	case errors.Is(err, operator.ErrNoDaemon) && len(found) > 0:
		err = faults(found)
	case errors.Is(err, operator.ErrNoDaemon):
		err = command.ExitError{Status: statusNoDaemon, Err: fmt.Errorf("%w with this configuration: start it with parley run", err)}
	}
	return client, found, err
}
