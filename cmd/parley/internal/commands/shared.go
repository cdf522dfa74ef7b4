package commands

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// shared are the flags of an operator's command with subcommands.
type shared struct {
	target
	JSON, Quiet bool
	// workspace and limit are the flags of a list.
	workspace string
	limit     int
	// thing is what an argument of the commands names, such as "run"; lister is the command that lists them.
	thing, lister string
}

// action does the work of a command by the operator API.
type action func(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error

// Command returns a command with the shared flags.
func (s *shared) Command(use, short string, args cobra.PositionalArgs, do action) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(c *cobra.Command, args []string) error {
		return operate(c, &s.target, func(ctx context.Context, client *operator.Client) error {
			return s.absent(do(ctx, c, client, args), args...)
		})
	}}
	s.Flags(c)
	jsonFlag(c, &s.JSON)
	quietFlag(c, &s.Quiet)
	return c
}

// ListFlags adds the flags of a list.
func (s *shared) ListFlags(commands ...*cobra.Command) {
	for _, c := range commands {
		c.Flags().StringVar(&s.workspace, "workspace", "", "only those of this workspace")
		c.Flags().IntVar(&s.limit, "limit", 100, "at most this many")
	}
}

// absent gives the error about a row that the store does not have the row's name, and the command that lists those that it has.
func (s *shared) absent(err error, names ...string) error {
	refused, ok := errors.AsType[*operator.Error](err)
	if !ok || refused.Code != "not-found" || s.thing == "" || len(names) == 0 {
		return err
	}
	return fmt.Errorf("there is no %s %s: see %s", s.thing, names[0], s.lister)
}

// number reads the id of a row.
func number(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, command.UsageError{Err: fmt.Errorf("%q is no id: name a number of the list, such as 7", text)}
	}
	return id, nil
}

// list is how a command shows a list.
type list[T any] struct {
	query url.Values
	read  func(context.Context, url.Values) (operator.List[T], error)
	// keep chooses items; nil for all.
	keep   func(T) bool
	header []string
	row    func(T) []any
}

// show prints the items as a table, or as JSON, one a line. It says so if there are more than s.limit.
func (l list[T]) show(ctx context.Context, c *cobra.Command, client *operator.Client, s *shared) error {
	if err := configured(ctx, client, s.workspace); err != nil {
		return err
	}
	if l.query == nil {
		l.query = url.Values{}
	}
	on := displayOf(c)
	t, left := on.table(l.header...), s.limit
	more, err := eachItem(ctx, l.query, l.read, func(item T) (bool, error) {
		if l.keep != nil && !l.keep(item) {
			return true, nil
		}
		if left--; left < 0 {
			return false, nil
		}
		if s.JSON {
			return true, printJSON(on, item)
		}
		t.add(l.row(item)...)
		return true, nil
	})
	if !s.JSON && err == nil {
		err = t.end()
	}
	if more && err == nil && !s.Quiet {
		fmt.Fprintln(c.ErrOrStderr(), "there are more: see --limit")
	}
	return err
}

// eachItem calls do with each item of a list until it returns false. more reports whether it did.
func eachItem[T any](ctx context.Context, query url.Values, read func(context.Context, url.Values) (operator.List[T], error), do func(T) (bool, error)) (more bool, err error) {
	for {
		page, err := read(ctx, query)
		if err != nil {
			return false, err
		}
		for _, item := range page.Items {
			if on, err := do(item); err != nil || !on {
				return err == nil, err
			}
		}
		if page.Next == nil {
			return false, nil
		}
		query.Set("before", *page.Next)
	}
}

// configured returns an error if the daemon has no workspace with an id that is not empty.
func configured(ctx context.Context, client *operator.Client, id string) error {
	if id == "" {
		return nil
	}
	known, err := client.Workspaces(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, w := range known.Items {
		if w.ID == id {
			return nil
		}
		ids = append(ids, w.ID)
	}
	return command.UsageError{Err: fmt.Errorf("there is no workspace %s: the workspaces are %s", id, strings.Join(ids, ", "))}
}

// print prints a result as JSON, or in words.
func (s *shared) print(c *cobra.Command, result any, words func(display) error) error {
	if s.JSON {
		return printJSON(c.OutOrStdout(), result)
	}
	return words(displayOf(c))
}

// chosen returns the query with those values of a list's flags that are not empty.
func chosen(values map[string]string) url.Values {
	query := url.Values{}
	for name, value := range values {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}
