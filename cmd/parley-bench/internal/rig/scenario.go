package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"

	"parley/cmd/internal/command"
)

// Scenario is a measurement or a fault test of the daemon.
type Scenario interface {
	// Define declares the scenario's flags with their defaults.
	Define(f *FlagSet)
	// Run prints the figures. It returns ErrViolated if the daemon broke a promise.
	Run(ctx context.Context, b *Bench) error
}

// Subcommand is one scenario with its place in the command line.
type Subcommand struct {
	Name, Purpose string
	// Daemons is the default number of daemons; 0 for a scenario that runs exactly one
	// daemon on SQLite.
	Daemons  int
	Scenario Scenario
}

// ErrViolated reports that the scenario was completed and the daemon broke a promise.
var ErrViolated = errors.New("the daemon broke a promise")

// Start parses the flags, prepares the run's directory and runs the scenario. It removes
// the directory and ends all daemons, even if ctx has ended.
func (c Subcommand) Start(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &Bench{Out: out}
	own := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	c.Scenario.Define(&FlagSet{own})
	err = command.ParseFlags(c.Name, args, func(all *flag.FlagSet) {
		b.define(&FlagSet{all}, c.Daemons)
		own.VisitAll(func(f *flag.Flag) { all.Var(f.Value, f.Name, f.Usage) })
	})
	if err != nil {
		return err
	}
	settings := ""
	own.VisitAll(func(f *flag.Flag) { settings += fmt.Sprintf(", %s %v", f.Name, f.Value) })
	if b.Daemons > 1 && b.Postgres == "" {
		return command.UsageError{Err: errors.New("several daemons need -postgres: SQLite belongs to one process")}
	}
	if s, ok := c.Scenario.(interface{ Check(*Bench) error }); ok {
		if err := s.Check(b); err != nil {
			return command.UsageError{Err: err}
		}
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	engine := "SQLite"
	if b.Postgres != "" {
		engine = "PostgreSQL"
	}
	b.Printf("%s: %d x %s, %d cores for all, seed %d%s\n", c.Name, b.Daemons, engine, runtime.NumCPU(), b.Seed, settings)
	return c.Scenario.Run(ctx, b)
}
