package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/boot"
	"parley/config"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/transfer"
)

func copyStoreCommand() *cobra.Command {
	var named storeNames
	var quiet, asJSON bool
	c := &cobra.Command{
		Use:   "copy-store [FROM] [TO]",
		Short: "Copies a journal into an empty store, from SQLite to PostgreSQL or back",
		Long: `Copies the journal in FROM into TO, an empty store. Each is sqlite:<file> or
postgres://user@host/database. No daemon may use either.

${NAME} and ${file:path} in FROM and TO are replaced, so that no password is in the list of
processes; PGPASSWORD and ~/.pgpass work too. Instead, --from-config and --to-config name a
configuration whose store is meant.

It ends by comparing the row count and a checksum of every table; until then no daemon
starts on TO. After an interruption, start again with an empty TO. FROM is not changed.
Files in attachments.dir are not copied.`,
		Example: `  parley copy-store sqlite:data/parley.db 'postgres://parley:${DB_PASSWORD}@db/parley'
  parley copy-store --from-config parley.yaml --to-config new/parley.yaml`,
		Args: wrong(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			from, to, err := named.read(args)
			if err != nil {
				return err
			}
			rows, err := copyStore(c.Context(), from, to, newProgress(c, quiet))
			if err != nil {
				return err
			}
			return printCopied(c.OutOrStdout(), rows, asJSON)
		},
	}
	c.Flags().StringVar(&named.from, "from-config", "", "the configuration whose store is FROM")
	c.Flags().StringVar(&named.to, "to-config", "", "the configuration whose store is TO")
	quietFlag(c, &quiet)
	jsonFlag(c, &asJSON)
	return c
}

// storeNames are the configurations that name a store instead of an argument; empty for none.
type storeNames struct{ from, to string }

// read returns the two stores.
func (n storeNames) read(args []string) (from, to config.Store, err error) {
	if args, from, err = oneStore("FROM", n.from, args); err != nil {
		return from, to, err
	}
	if args, to, err = oneStore("TO", n.to, args); err != nil {
		return from, to, err
	}
	switch {
	case len(args) > 0:
		err = command.UsageError{Err: errors.New("a store is given as an argument and by a configuration")}
	case reflect.DeepEqual(from, to):
		err = command.UsageError{Err: errors.New("FROM and TO are the same store")}
	}
	return from, to, err
}

// oneStore returns the store of a configuration, or that of the first argument, and the other arguments.
func oneStore(name, path string, args []string) (rest []string, s config.Store, err error) {
	if path != "" {
		c, err := config.Load(path)
		if err != nil {
			return args, s, faults(err)
		}
		return args, c.Store, nil
	}
	if len(args) == 0 {
		return args, s, command.UsageError{Err: fmt.Errorf("%s is missing: name it as an argument, or its configuration with --%s-config", name, strings.ToLower(name))}
	}
	if s, err = config.ReadStore(args[0]); err != nil {
		err = command.UsageError{Err: fmt.Errorf("%s %w", name, err)}
	}
	return args[1:], s, err
}

// copyStore returns the number of copied rows by table.
func copyStore(ctx context.Context, from, to config.Store, shown *progress) (rows map[string]int64, err error) {
	if from.Engine == config.SQLite {
		if _, err := os.Stat(from.Path); err != nil {
			return nil, fmt.Errorf("FROM: %w", err)
		}
	}
	source, err := openStore(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("FROM: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openStore(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("TO: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := source.Read(ctx, func(tx storage.Tx) error { rows, err = transfer.Count(tx); return err }); err != nil {
		return nil, fmt.Errorf("FROM: %w", err)
	}
	defer shown.end()
	return rows, transfer.Copy(ctx, source, target, transfer.Options{Progress: copying(shown, rows)})
}

// copying returns a function that shows the progress of a copy with the given numbers of rows.
func copying(shown *progress, rows map[string]int64) func(transfer.Progress) {
	var total, done int64
	for _, n := range rows {
		total += n
	}
	shown.begin("copying rows", total, false)
	comparing := false
	return func(p transfer.Progress) {
		if p.Comparing && !comparing {
			comparing, done = true, 0
			shown.begin("comparing rows", total, false)
		}
		shown.at(done + p.Rows)
		if p.Done {
			done += p.Rows
		}
	}
}

// printCopied prints the copied tables that have rows.
func printCopied(to io.Writer, rows map[string]int64, asJSON bool) error {
	if asJSON {
		return printJSON(to, struct {
			Tables map[string]int64 `json:"tables"`
		}{rows})
	}
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		if n := rows[table]; n > 0 {
			fmt.Fprintf(to, "%s: %s\n", table, count(n, "row"))
		}
	}
	_, err := fmt.Fprintln(to, "the copy is complete: every table has the same row count and checksum in both stores")
	return err
}

func openStore(ctx context.Context, store config.Store) (transfer.Store, error) {
	engine, err := boot.Store(ctx, store, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, err
	}
	return engine.(transfer.Store), nil // both engines are
}
