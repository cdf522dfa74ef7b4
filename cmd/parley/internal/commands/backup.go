package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/daemon"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest/backup"
)

// backupFlags are the flags of the commands about backups.
type backupFlags struct {
	target
	quiet, asJSON bool
}

func (f *backupFlags) add(c *cobra.Command) {
	configFlag(c, &f.Config, ifExists)
	quietFlag(c, &f.quiet)
	jsonFlag(c, &f.asJSON)
}

func backupCommand() *cobra.Command {
	var f backupFlags
	c := &cobra.Command{
		Use:   "backup FILE.tar.zst",
		Short: "Saves the whole store in one file, while the daemon works",
		Long: `Saves the journal, as it is at one moment, and the attachments that it names in FILE, and
reads FILE back. The daemon goes on meanwhile. Beside an SQLite database there must be as
much free space as it has, and in TMPDIR of the daemon (or /tmp) as the largest attachment has.

A PostgreSQL database is saved by pg_dump; FILE then has only the attachments that are in
the database, so that pg_dump may leave them out with --exclude-table-data=blobs. Make the
dump first.`,
		Example: `  parley backup /backups/parley-$(date +%F).tar.zst
  parley backup verify /backups/parley-2026-11-27.tar.zst`,
		Args: wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return operate(c, &f.target, func(ctx context.Context, client *operator.Client) error {
				return makeBackup(ctx, c, f, client, args[0])
			})
		},
	}
	f.add(c)
	f.URLFlag(c)
	c.AddCommand(verifyCommand())
	return c
}

// makeBackup makes the archive at path, and tells the store of it.
func makeBackup(ctx context.Context, c *cobra.Command, f backupFlags, client *operator.Client, path string) error {
	begun, shown := time.Now(), newProgress(c, f.quiet)
	defer shown.end()
	result, err := backup.Create(ctx, path, func(w io.Writer) error {
		shown.begin("making the snapshot", -1, false)
		contents, size, err := client.Backup(ctx)
		if err != nil {
			return err
		}
		defer contents.Close()
		shown.begin("saving", size, true)
		_, err = io.Copy(w, shown.reader(contents))
		return err
	}, func(archive io.Reader, size int64) io.Reader {
		shown.begin("reading back", size, true)
		return shown.reader(archive)
	})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	shown.end()
	if err := client.BackupVerified(ctx, operator.BackupOf(result)); err != nil {
		return fmt.Errorf("%s is whole, but its time could not be stored: %w", path, err)
	}
	if err := printBackup(c, f, result, fmt.Sprintf("verified; %s", time.Since(begun).Round(time.Second))); err != nil {
		return err
	}
	if result.Engine == backup.Postgres && !f.quiet {
		fmt.Fprintln(c.ErrOrStderr(), "note: the journal itself is in PostgreSQL: save it with pg_dump, before this command")
	}
	return nil
}

// printBackup prints the description of an archive, and the files that are not in it to stderr.
func printBackup(c *cobra.Command, f backupFlags, r backup.Result, end string) error {
	if n := len(r.Missing); n > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "warning: %s of the journal could not be read, removed meanwhile or damaged: %s\n", count(n, "file"), strings.Join(r.Missing[:min(n, 5)], ", "))
	}
	if f.asJSON {
		return printJSON(c.OutOrStdout(), operator.BackupOf(r))
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%s, %s, %s; schema %d; %s\n", size(r.Bytes), count(r.Tables["messages"], "message"), count(r.Files, "file"), r.Schema, end)
	return err
}

func verifyCommand() *cobra.Command {
	var f backupFlags
	c := &cobra.Command{
		Use:     "verify FILE",
		Short:   "Reads a backup, and compares everything with its sums and counts",
		Long:    "Reads a backup, and compares everything with its sums and counts. It needs as much free space beside FILE, or else in the folder of temporary files, as the database has.",
		Example: "  parley backup verify /backups/parley-2026-11-27.tar.zst",
		Args:    wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			draft, err := draftFor(args[0])
			if err != nil {
				return err
			}
			shown := newProgress(c, f.quiet)
			result, err := withArchive(args[0], "verifying", shown, func(archive io.Reader) (backup.Result, error) {
				return backup.Verify(c.Context(), archive, draft)
			})
			if err != nil {
				return err
			}
			return printBackup(c, f, result, "the backup is whole, of "+result.At.Local().Format(time.DateTime))
		},
	}
	quietFlag(c, &f.quiet)
	jsonFlag(c, &f.asJSON)
	return c
}

// draftFor returns the name of a file for the database of an archive: beside it if its folder takes files, or else
// in the folder of temporary files.
func draftFor(archive string) (string, error) {
	const writing = 2
	draft := archive + ".verify"
	if syscall.Access(filepath.Dir(archive), writing) == nil {
		return draft, nil
	}
	if err := syscall.Access(os.TempDir(), writing); err != nil {
		return "", fmt.Errorf("neither %s nor %s, the folder of temporary files, takes a file: %w: set TMPDIR to a folder with as much room as the database has", filepath.Dir(archive), os.TempDir(), err)
	}
	return filepath.Join(os.TempDir(), filepath.Base(draft)), nil
}

// withArchive opens an archive and shows the progress of its reading.
func withArchive(path, what string, shown *progress, read func(archive io.Reader) (backup.Result, error)) (backup.Result, error) {
	file, err := os.Open(path)
	if err != nil {
		return backup.Result{}, err
	}
	defer file.Close()
	defer shown.end()
	info, err := file.Stat()
	if err != nil {
		return backup.Result{}, err
	}
	shown.begin(what, info.Size(), true)
	result, err := read(shown.reader(file))
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return result, err
}

func restoreCommand() *cobra.Command {
	var f backupFlags
	var to string
	c := &cobra.Command{
		Use:   "restore FILE [--to STORE]",
		Short: "Restores a backup into an empty place",
		Long: `Restores the journal and the attachments of a backup, and compares everything with its
sums and counts before the database gets its name. STORE is sqlite:<file>, which must not
exist, or by default the store of the configuration. The attachments go into the place
that the configuration names.

The daemon that starts on it continues what had not ended at the time of the backup, reads
the messages that were missed since, and may send again a post that left since.

With PostgreSQL, restore the database with pg_restore first; then this command restores the
attachments into it. ${NAME} and ${file:path} in STORE are replaced.`,
		Example: `  parley restore /backups/parley-2026-11-27.tar.zst --to sqlite:data/parley.db`,
		Args:    wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			conf, err := config.Load(f.Config)
			if err != nil {
				return faults(err)
			}
			if c.Flags().Changed("to") {
				if conf.Store, err = config.ReadStore(to); err != nil {
					return command.UsageError{Err: fmt.Errorf("--to %w", err)}
				}
			}
			shown := newProgress(c, f.quiet)
			result, err := withArchive(args[0], "restoring", shown, func(archive io.Reader) (backup.Result, error) {
				return daemon.Restore(c.Context(), conf, archive)
			})
			if err != nil {
				return err
			}
			return printBackup(c, f, result, "restored as it was at "+result.At.Local().Format(time.DateTime))
		},
	}
	f.add(c)
	c.Flags().StringVar(&to, "to", "", "the store to make (default the store of the configuration)")
	return c
}
