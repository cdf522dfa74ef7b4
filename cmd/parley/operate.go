package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
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

// target names the daemon of a command: that of a configuration, or one at an address.
type target struct {
	config, url string
}

// flags adds the flags that name the daemon.
func (t *target) flags(c *cobra.Command) {
	configFlag(c, &t.config, ifExists)
	t.urlFlag(c)
}

func (t *target) urlFlag(c *cobra.Command) {
	c.Flags().StringVar(&t.url, "url", "", "the address of operator.listen of another machine's daemon; PARLEY_TOKEN is your token there")
}

// tokenName is the variable with the token of an operator.
const tokenName = "PARLEY_TOKEN"

// remote returns a client of the daemon at the address; nil without an address.
func (t *target) remote() (*operator.Client, error) {
	if t.url == "" {
		return nil, nil
	}
	u, err := url.Parse(t.url)
	switch token := os.Getenv(tokenName); {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "":
		return nil, command.UsageError{Err: errors.New("--url must be like https://parley.example:8486, without a path")}
	case token == "":
		return nil, command.UsageError{Err: errors.New("--url needs the token of an operator in the variable " + tokenName)}
	default:
		return operator.DialURL(strings.TrimSuffix(t.url, "/"), token), nil
	}
}

// explain adds to the error of a command what to do about it.
func (t *target) explain(err error) error {
	if refused, ok := errors.AsType[*operator.Error](err); ok && refused.Status == http.StatusUnauthorized {
		return fmt.Errorf("the daemon at %s knows no operator with the token in %s", t.url, tokenName)
	}
	if broken, ok := errors.AsType[*url.Error](err); ok && t.url != "" && !errors.Is(err, context.Canceled) {
		return command.ExitError{Status: statusNoDaemon, Err: fmt.Errorf("no daemon answers at %s: %w", t.url, broken.Err)}
	}
	return err
}

// operate calls do with a client of the target's daemon. Without a daemon, the client works on the store, and the
// command says so.
func operate(c *cobra.Command, t *target, do func(context.Context, *operator.Client) error) (err error) {
	client, err := t.remote()
	if client == nil && err == nil {
		client, err = connect(c.Context(), t.config)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if client.Stopped {
		fmt.Fprintln(c.ErrOrStderr(), "(daemon stopped)")
	}
	return t.explain(do(c.Context(), client))
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
