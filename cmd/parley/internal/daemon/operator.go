package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/adapters/guard"
	"parley/adapters/replay"
	"parley/cmd/parley/internal/boot"
	"parley/cmd/parley/internal/console"
	"parley/cmd/parley/internal/operator"
	"parley/cmd/parley/internal/player"
	"parley/config"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/storage"
)

// entrance is a server of the operator API with its listener.
type entrance struct {
	*http.Server
	net.Listener
}

// openOperator makes the operator API and opens its socket and its listener. A daemon whose socket
// another daemon has goes on without one: it was started in the same folder, on a shared store.
func (d *Daemon) openOperator(c *config.Config, version string) error {
	d.operator = &operator.Service{
		Journal: d.Journal, Config: func() *config.Config { return d.Setup().Config }, Now: d.now, Version: version, Node: d.node, Guard: d.guard, Files: d.files,
		Live: &operator.Live{
			Since: d.now().UTC(), Address: d.Addr().String(), ConfiguredAt: func() time.Time { return d.Setup().At }, Store: d.probe,
			Workspaces: workspaces{&d.accounts, d.publicURL}, Agents: d.watch,
			Intake: d.Ingest, Outbox: d.outbox, Runs: d.Turns, Schedules: d.schedules, Pauses: d.pauses, Strangers: d.strangers,
			Reload: d.reloadNow, Chat: d.chatPage, Log: d.events, Steps: d.watch.Steps, Streams: d.streams,
		},
		Play: func(ctx context.Context, letter envelopes.Letter) (*replay.Result, error) {
			return player.PlayLetter(ctx, d.Setup().Config, d.Journal, d.namesOf(letter.Envelope.Workspace), letter)
		},
		Trial: func(ctx context.Context, t operator.Trial, thread *listing.Thread) (operator.Played, error) {
			return player.Try(ctx, d.Setup().Config, d.Journal, d.namesOf(t.Workspace), d.now(), t, thread)
		},
	}
	socket, err := operator.Listen(c.Socket())
	switch {
	case err == nil:
		d.entrances = append(d.entrances, entrance{d.newOperatorServer(d.operator.Local()), socket})
	case errors.Is(err, operator.ErrTaken):
		d.log.Warn("the operator API has no socket on this node", "err", err)
	default:
		return fmt.Errorf("operator socket: %w", err)
	}
	d.openConsole(c.Console)
	if c.OperatorAPI.Listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", c.OperatorAPI.Listen)
	if err != nil {
		return fmt.Errorf("operator.listen: %w", boot.Hinted(err))
	}
	d.operatorAddr = l.Addr()
	server := d.newOperatorServer(d.operator.Remote(boot.IsLoopback(l.Addr())))
	d.guard.Protect(server)
	d.entrances = append(d.entrances, entrance{server, l})
	return nil
}

// openConsole opens the console's listener. The daemon goes on without the console if another program,
// such as another daemon of this machine, has the address.
func (d *Daemon) openConsole(c config.Console) {
	if c.Listen == "" {
		return
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		d.log.Warn("the console has no address; set console.listen to a free one", "err", err)
		return
	}
	d.console = console.New(console.Options{
		Service: d.operator, PublicURL: func() string { return d.Setup().Config.Console.PublicURL }, Guard: d.guard, Now: d.now,
	})
	server := d.newOperatorServer(d.console.Handler(boot.IsLoopback(l.Addr())))
	server.RegisterOnShutdown(d.console.Close)
	d.guard.Protect(server)
	d.entrances = append(d.entrances, entrance{server, l})
	d.consoleURL = boot.BaseURL(l.Addr().String())
	d.operator.Live.Console = func(by operator.Caller) (string, error) {
		base := cmp.Or(strings.TrimSuffix(d.Setup().Config.Console.PublicURL, "/"), d.consoleURL)
		return base + "/login#" + d.console.Ticket(by), nil
	}
}

// newOperatorServer returns a server with the bounds of the daemon's own. The streams end when it stops.
func (d *Daemon) newOperatorServer(handler http.Handler) *http.Server {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	server.RegisterOnShutdown(d.streams.Close)
	return server
}

// OperatorAddr returns the address of operator.listen; nil if there is none.
func (d *Daemon) OperatorAddr() net.Addr { return d.operatorAddr }

// serveOperators serves the operator API until its servers stop.
func (d *Daemon) serveOperators() error {
	ended := make(chan error, len(d.entrances))
	for _, e := range d.entrances {
		go func() { ended <- e.Serve(e.Listener) }()
	}
	var all error
	for range d.entrances {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// stopOperators ends the operator API after the requests that are being served, or when ctx ends.
func (d *Daemon) stopOperators(ctx context.Context) (all error) {
	for _, e := range d.entrances {
		if err := e.Shutdown(ctx); err != nil {
			all = errors.Join(all, err, e.Server.Close())
		}
	}
	return all
}

// closeOperators closes the listeners of a daemon that does not run.
func (d *Daemon) closeOperators() {
	for _, e := range d.entrances {
		_ = e.Listener.Close()
	}
}

// Operate returns a client of the operator API for a configuration: of the daemon that runs, or
// otherwise of the store itself. It fails with operator.ErrNoDaemon if there is neither. The caller
// closes the client.
func Operate(ctx context.Context, c *config.Config, version string) (*operator.Client, error) {
	client, err := operator.Dial(ctx, c.Socket())
	if !errors.Is(err, operator.ErrNoDaemon) {
		return client, err
	}
	if c.Store.Engine == config.SQLite {
		if _, err := os.Stat(c.Store.Path); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w, and there is no store at %s yet: start it with parley run", operator.ErrNoDaemon, c.Store.Path)
		}
	}
	engine, err := boot.Reader(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	if err := storage.Whole(ctx, engine); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	o := journal.Options{Node: uuid.NewString(), Zone: c.Zone}
	if clock, shared := engine.(storage.Clock); shared {
		o.Lease, o.Now = DefaultLease, clock.Now
	}
	j := journal.New(engine, o)
	now := o.Now
	if now == nil {
		now = time.Now
	}
	files, err := boot.Files(c, j)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	s := &operator.Service{
		Journal: j, Config: func() *config.Config { return c }, Now: now, Version: version, Node: o.Node, Guard: guard.New(func(string) {}), Files: files,
		Play: func(ctx context.Context, letter envelopes.Letter) (*replay.Result, error) {
			return player.PlayLetter(ctx, c, j, nil, letter)
		},
		Trial: func(ctx context.Context, t operator.Trial, thread *listing.Thread) (operator.Played, error) {
			return player.Try(ctx, c, j, nil, now(), t, thread)
		},
	}
	return operator.Alone(s, j.Close), nil
}
