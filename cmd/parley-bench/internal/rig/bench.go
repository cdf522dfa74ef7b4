// Package rig runs programs under test: a run's directory and flags, daemons as child processes, the
// store that they share, and the way of Slack's requests to them.
package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"parley/ingest/wake"
)

// Bench is one run of a subcommand: its common flags, its directory and the binary
// under test.
type Bench struct {
	parley, dir string
	keep        bool
	Postgres    string // URL of the server; empty for SQLite
	Daemons     int    // 1 or more
	Seed        uint64 // of all random choices
	// Random makes the scenario's own choices. A goroutine beside it has draws of its own.
	Random *rand.Rand

	Work    string // the directory of this run
	Out     io.Writer
	closers []func() error
}

func (b *Bench) define(f *FlagSet, daemons int) {
	f.StringVar(&b.parley, "parley", "", "the daemon's binary; if empty, the tool builds it")
	f.StringVar(&b.dir, "dir", "", "the parent of the run's directory; if empty, the system's directory for temporary files")
	f.BoolVar(&b.keep, "keep", false, "keep the run's directory and databases")
	f.Uint64Var(&b.Seed, "seed", 0, "seed of all random choices; 0 for a new one, which the tool prints")
	b.Daemons = 1
	if daemons > 0 {
		f.StringVar(&b.Postgres, "postgres", "", "URL of a PostgreSQL server; the store is a new database on it. If empty, the store is SQLite")
		f.Number(&b.Daemons, "daemons", daemons, 1, "number of daemons that share the store; several need -postgres")
	}
}

// open chooses a seed and builds the daemon, if none was given, and makes the run's directory.
func (b *Bench) open(ctx context.Context) (err error) {
	b.Seed = cmp.Or(b.Seed, rand.Uint64())
	b.Random = b.Draws(0)
	if b.Work, err = os.MkdirTemp(b.dir, "parley-bench-"); err != nil {
		return fmt.Errorf("make the run's directory: %w", err)
	}
	b.OnClose(func() error {
		if b.keep {
			b.Printf("kept: %s\n", b.Work)
			return nil
		}
		return os.RemoveAll(b.Work)
	})
	b.parley, err = Build(ctx, b.parley, filepath.Join(b.Work, "parley"))
	return err
}

// Build returns the absolute path of the daemon's program. It builds the program to
// target if none is given.
func Build(ctx context.Context, given, target string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", target, "parley/cmd/parley")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the daemon (or name a binary with -parley): %w\n%s", err, output)
	}
	return target, nil
}

// OnClose registers a function for close, which calls the functions in reverse order.
func (b *Bench) OnClose(do func() error) { b.closers = append(b.closers, do) }

// Serve serves HTTP until close and returns the server's URL.
func (b *Bench) Serve(handler http.Handler) string {
	server := httptest.NewServer(handler)
	b.OnClose(func() error {
		server.CloseClientConnections() // a request that hangs ends
		server.Close()
		return nil
	})
	return server.URL
}

// Close ends what the run has started, and removes its directory unless the run keeps it.
func (b *Bench) Close() error {
	var errs []error
	for _, do := range slices.Backward(b.closers) {
		errs = append(errs, do())
	}
	return errors.Join(errs...)
}

// Draws returns one of the run's sequences of random numbers.
func (b *Bench) Draws(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(b.Seed, stream)) }

// Printf prints to the output of the run.
func (b *Bench) Printf(format string, args ...any) { fmt.Fprintf(b.Out, format, args...) }

// Await waits until a condition holds. It returns an error if ctx ends before.
func Await(ctx context.Context, holds func() bool) error {
	for !holds() {
		if !wake.After(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}
