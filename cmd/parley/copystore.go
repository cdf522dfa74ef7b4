package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/config"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/transfer"
)

func copyStoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy-store FROM TO",
		Short: "Copies a journal into an empty store, from SQLite to PostgreSQL or back",
		Long: `Copies the journal in FROM into TO, an empty store. Each is sqlite:<file> or
postgres://user@host/database. No daemon may use either.

It ends by comparing the row count and a checksum of every table; until then no daemon
starts on TO. After an interruption, start again with an empty TO. FROM is not changed.
Files in attachments.dir are not copied.`,
		Args: wrong(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			var from, to config.Store
			if err := from.UnmarshalText([]byte(args[0])); err != nil {
				return command.UsageError{Err: fmt.Errorf("FROM %w", err)}
			}
			if err := to.UnmarshalText([]byte(args[1])); err != nil {
				return command.UsageError{Err: fmt.Errorf("TO %w", err)}
			}
			if reflect.DeepEqual(from, to) {
				return command.UsageError{Err: errors.New("FROM and TO are the same store")}
			}
			return copyStore(c.Context(), from, to, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
}

func copyStore(ctx context.Context, from, to config.Store, out, progress io.Writer) (err error) {
	if from.Engine == config.SQLite {
		if _, err := os.Stat(from.Path); err != nil {
			return fmt.Errorf("FROM: %w", err)
		}
	}
	source, err := openStore(ctx, from)
	if err != nil {
		return fmt.Errorf("FROM: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openStore(ctx, to)
	if err != nil {
		return fmt.Errorf("TO: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := transfer.Copy(ctx, source, target, transfer.Options{Progress: printer(progress)}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "the copy is complete: every table has the same row count and checksum in both stores")
	return err
}

func openStore(ctx context.Context, store config.Store) (transfer.Store, error) {
	if store.Engine == config.Postgres {
		return postgres.Open(ctx, postgres.Options{URL: store.URL.Reveal()})
	}
	return sqlite.Open(ctx, store.Path, sqlite.Options{})
}

// lineEvery is the number of rows in one table after which a line is printed.
const lineEvery = 20_000

// printer prints a line for each table, and further lines during a large table.
func printer(to io.Writer) func(transfer.Progress) {
	printed := int64(0) // rows of the table in the last printed line
	return func(p transfer.Progress) {
		if !p.Done && p.Rows-printed < lineEvery {
			return
		}
		verb, more := "copied", " so far"
		if p.Comparing {
			verb = "compared"
		}
		if printed = p.Rows; p.Done {
			printed, more = 0, ""
		}
		fmt.Fprintf(to, "%s %s: %d rows%s\n", verb, p.Table, p.Rows, more)
	}
}
