// Package boot opens what a daemon and the commands that work without one begin with: the store, the place of the copies of
// files, and the listener.
package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"parley/config"
	"parley/ingest/attach"
	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// Store opens the configured store, and makes or updates its schema. The recorder, which may be nil, sees each commit.
func Store(ctx context.Context, store config.Store, log *slog.Logger, recorder storage.Recorder) (storage.Engine, error) {
	if store.Engine == config.Postgres {
		o := postgresOptions(store)
		o.Log, o.Recorder = log, recorder
		return postgres.Open(ctx, o)
	}
	return sqlite.Open(ctx, store.Path, sqlite.Options{Log: log, Recorder: recorder})
}

// Reader opens the store for a command. It never changes the schema. Only the first write locks an SQLite file,
// so a daemon may start meanwhile.
func Reader(ctx context.Context, store config.Store) (storage.Engine, error) {
	log := slog.New(slog.DiscardHandler)
	if store.Engine == config.SQLite {
		return sqlite.OpenReader(ctx, store.Path, sqlite.Options{Log: log})
	}
	o := postgresOptions(store)
	o.Log, o.KeepSchema = log, true
	return postgres.Open(ctx, o)
}

// Check reports whether the store can be opened, and which steps of the schema the next start makes. It changes nothing.
func Check(ctx context.Context, store config.Store) (storage.Upgrade, error) {
	if store.Engine == config.Postgres {
		return postgres.Check(ctx, postgresOptions(store))
	}
	return sqlite.Check(ctx, store.Path, sqlite.Options{})
}

func postgresOptions(store config.Store) postgres.Options {
	return postgres.Options{URL: store.URL.Reveal(), ListenURL: store.ListenURL.Reveal(), Connections: store.Connections}
}

// Files returns the store of copies of attachments. If several daemons can share the
// journal, each must find the copies of the others, so they are in the journal unless a
// bucket is configured.
func Files(c *config.Config, j *journal.Journal) (*attach.Store, error) {
	books := attach.Books{Hold: j.Files.HoldCopy, Spend: j.Budgets.SpendBytes, Bytes: j.Files.CopyBytes}
	if c.Store.Engine == config.SQLite {
		return attach.New(c.Attachments, books, nil)
	}
	return attach.New(c.Attachments, books, j.Files)
}

// Listen opens the listener. It fails if other machines could reach the local workspace, whose
// callers use plain HTTP.
func Listen(c *config.Config) (net.Listener, error) {
	l, err := net.Listen("tcp", c.Listen)
	if err == nil && c.HasLocal() && !IsLoopback(l.Addr()) {
		err = fmt.Errorf("%s is not a loopback address; the local workspace needs one because its token would cross the network readable", l.Addr())
		return nil, errors.Join(err, l.Close())
	}
	return l, err
}

// InUse is the hint for an address that another program has.
const InUse = "unless this daemon runs already, stop the other program or change the address"

// Hinted adds a hint to the error of a listener.
func Hinted(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: %s", err, InUse)
	}
	return err
}

// IsLoopback reports whether only this machine reaches a listener's address.
func IsLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// BaseURL returns the address of an HTTP server that listens on host:port for a client on its machine.
func BaseURL(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // it has both
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
