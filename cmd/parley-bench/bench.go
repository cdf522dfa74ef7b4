package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"parley/cmd/internal/command"
	"parley/ingest/wake"
)

// bench is one run of a subcommand: its common flags, its directory and the binary
// under test.
type bench struct {
	parley, dir string
	keep        bool
	postgres    string // URL of the server; empty for SQLite
	daemons     int    // 1 or more
	seed        uint64 // of all random choices
	// random makes the scenario's own choices. A goroutine beside it has draws of its own.
	random *rand.Rand

	work    string // the directory of this run
	out     io.Writer
	closers []func() error
}

func (b *bench) define(f *flagSet, daemons int) {
	f.StringVar(&b.parley, "parley", "", "the daemon's binary; if empty, the tool builds it")
	f.StringVar(&b.dir, "dir", "", "the parent of the run's directory; if empty, the system's directory for temporary files")
	f.BoolVar(&b.keep, "keep", false, "keep the run's directory and databases")
	f.Uint64Var(&b.seed, "seed", 0, "seed of all random choices; 0 for a new one, which the tool prints")
	b.daemons = 1
	if daemons > 0 {
		f.StringVar(&b.postgres, "postgres", "", "URL of a PostgreSQL server; the store is a new database on it. If empty, the store is SQLite")
		f.number(&b.daemons, "daemons", daemons, 1, "number of daemons that share the store; several need -postgres")
	}
}

// start parses the flags, prepares the run's directory and runs the scenario. It removes
// the directory and ends all daemons, even if ctx has ended.
func (c subcommand) start(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{out: out}
	own := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.scenario.define(&flagSet{own})
	err = command.ParseFlags(c.name, args, func(all *flag.FlagSet) {
		b.define(&flagSet{all}, c.daemons)
		own.VisitAll(func(f *flag.Flag) { all.Var(f.Value, f.Name, f.Usage) })
	})
	if err != nil {
		return err
	}
	settings := ""
	own.VisitAll(func(f *flag.Flag) { settings += fmt.Sprintf(", %s %v", f.Name, f.Value) })
	if b.daemons > 1 && b.postgres == "" {
		return command.UsageError{Err: errors.New("several daemons need -postgres: SQLite belongs to one process")}
	}
	if s, ok := c.scenario.(interface{ check(*bench) error }); ok {
		if err := s.check(b); err != nil {
			return command.UsageError{Err: err}
		}
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	engine := "SQLite"
	if b.postgres != "" {
		engine = "PostgreSQL"
	}
	b.printf("%s: %d x %s, %d cores for all, seed %d%s\n", c.name, b.daemons, engine, runtime.NumCPU(), b.seed, settings)
	return c.scenario.run(ctx, b)
}

// open chooses a seed and builds the daemon, if none was given, and makes the run's directory.
func (b *bench) open(ctx context.Context) (err error) {
	b.seed = cmp.Or(b.seed, rand.Uint64())
	b.random = b.draws(0)
	if b.work, err = os.MkdirTemp(b.dir, "parley-bench-"); err != nil {
		return fmt.Errorf("make the run's directory: %w", err)
	}
	b.onClose(func() error {
		if b.keep {
			b.printf("kept: %s\n", b.work)
			return nil
		}
		return os.RemoveAll(b.work)
	})
	b.parley, err = binary(ctx, b.parley, filepath.Join(b.work, "parley"))
	return err
}

// binary returns the absolute path of the daemon's program. It builds the program to
// target if none is given.
func binary(ctx context.Context, given, target string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", target, "parley/cmd/parley")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the daemon (or name a binary with -parley): %w\n%s", err, output)
	}
	return target, nil
}

// onClose registers a function for close, which calls the functions in reverse order.
func (b *bench) onClose(do func() error) { b.closers = append(b.closers, do) }

// serve serves HTTP until close and returns the server's URL.
func (b *bench) serve(handler http.Handler) string {
	server := httptest.NewServer(handler)
	b.onClose(func() error {
		server.CloseClientConnections() // a request that hangs ends
		server.Close()
		return nil
	})
	return server.URL
}

func (b *bench) close() error {
	var errs []error
	for _, do := range slices.Backward(b.closers) {
		errs = append(errs, do())
	}
	return errors.Join(errs...)
}

// draws returns one of the run's sequences of random numbers.
func (b *bench) draws(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(b.seed, stream)) }

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }

// await waits until a condition holds. It returns an error if ctx ends before.
func await(ctx context.Context, holds func() bool) error {
	for !holds() {
		if !wake.After(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}
