package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/config"
	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/transfer"
)

func copyStoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy-store FROM TO",
		Short: "Copies a journal into an empty store, from SQLite to PostgreSQL or back",
		Long: `Copies the journal in FROM into TO, an empty store. Each is sqlite:<file> or
postgres://user@host/database. No daemon may work on either.

Whatever ends it, the same command again goes on where it ended. At the end the two are
compared, row by row; until then no daemon starts on TO. FROM stays as it is. Files that
attachments.dir holds are not part of a store and stay where they are.`,
		Args: wrong(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			var from, to config.Store
			if err := from.UnmarshalText([]byte(args[0])); err != nil {
				return usageError{fmt.Errorf("FROM %w", err)}
			}
			if err := to.UnmarshalText([]byte(args[1])); err != nil {
				return usageError{fmt.Errorf("TO %w", err)}
			}
			if from.Equal(to) {
				return usageError{errors.New("FROM and TO are the same store")}
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
	lines := &progressLines{to: progress}
	report, err := transfer.Copy(ctx, source, target, transfer.Options{Progress: lines.hear})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped; the same command goes on where it ended: %w", err)
	case err != nil:
		return err
	}
	lines.end()
	return summary(out, report)
}

func openStore(ctx context.Context, store config.Store) (journal.Engine, error) {
	if store.Engine == config.Postgres {
		return postgres.Open(ctx, postgres.Options{URL: store.URL.Reveal()})
	}
	return sqlite.Open(ctx, store.Path)
}

// lineEvery is how many rows of one table go by without a line.
const lineEvery = 20_000

// progressLines tells how far a copy has come: a line for each table, and more
// for a large one.
type progressLines struct {
	to   io.Writer
	last transfer.Progress
	told int64 // rows of the table at its last line
}

func (l *progressLines) hear(p transfer.Progress) {
	if p.Table != l.last.Table || p.Verifying != l.last.Verifying {
		l.end()
		l.told = 0
	}
	l.last = p
	if p.Rows-l.told >= lineEvery {
		l.line(" so far")
	}
}

// end tells of the table that was the last.
func (l *progressLines) end() {
	if l.last.Table != "" {
		l.line("")
	}
}

func (l *progressLines) line(more string) {
	verb := "copied"
	if l.last.Verifying {
		verb = "compared"
	}
	l.told = l.last.Rows
	fmt.Fprintf(l.to, "%s %s: %d rows%s\n", verb, l.last.Table, l.last.Rows, more)
}

// summary prints what the copy holds.
func summary(out io.Writer, r transfer.Report) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range r.Tables {
		fmt.Fprintf(table, "%s\t%d\n", c.Table, c.Rows)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if r.Altered > 0 {
		fmt.Fprintf(out, "%d texts hold a U+0000 or bytes that are not UTF-8, which PostgreSQL can't keep: TO has U+FFFD there\n", r.Altered)
	}
	state := "the copy is complete"
	if r.Before {
		state = "the copy was complete before"
	}
	_, err := fmt.Fprintf(out, "%s: the rows of %d tables and the checksums of %d threads are the same in both\n", state, len(r.Tables), r.Threads)
	return err
}
