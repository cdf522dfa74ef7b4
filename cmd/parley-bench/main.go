// Parley-bench measures a Parley daemon under load and tests its promises under
// faults: kills, broken connections, a locked store, a Slack that fails.
//
// The daemon runs as a child process on a loopback port. Several daemons can share
// one PostgreSQL; then the tool spreads Slack's calls over all of them. The tool plays
// Slack: it signs and posts events as Slack does, and serves the Web API that receives
// the replies. If a scenario needs an agent other than echo, the tool also serves the
// model behind an OpenAI-compatible API. A ledger records every message that the
// daemon acknowledged, and compares it with the replies. The floor, a program that does
// the least work for the same promises, runs beside the daemon as a yardstick: absolute
// figures change with the machine, the ratio does not.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// scenario is a measurement or a fault test of the daemon.
type scenario interface {
	// define declares the scenario's flags with their defaults.
	define(f *flagSet)
	// run prints the figures. It returns errViolated if the daemon broke a promise.
	run(ctx context.Context, b *bench) error
}

// command is one subcommand of the tool.
type command struct {
	name, purpose string
	// daemons is the default number of daemons; 0 for a scenario that runs exactly one
	// daemon on SQLite.
	daemons  int
	scenario scenario
}

func commands() []command {
	return []command{
		{"load", "durable messages per second, acknowledgement times, CPU and memory, beside the floor", 1, &load{}},
		{"kill", "kill -9 under load, with faults of Slack or a slow model", 1, &kill{}},
		{"cluster", "several daemons on one PostgreSQL: killed, suspended, disconnected from the database", 4, &cluster{}},
		{"sockets", "Socket Mode with forced disconnects under load", 1, &sockets{}},
		{"restarts", "messages during the daemon's downtime, and their answers after each start", 0, &restarts{}},
		{"tenants", "one workspace beside others whose Slack is slow or refuses every call", 0, &tenants{}},
		{"pace", "several daemons and the post rate of one channel", 4, &pace{}},
		{"slow", "waiting times of many threads with a slow agent", 1, &slow{}},
		{"scale", "memory and start-up time with a large store", 0, &scale{}},
		{"freeze", "the store locked by another process under load", 0, &freeze{}},
	}
}

// errViolated reports that the scenario was completed and the daemon broke a promise.
var errViolated = errors.New("the daemon broke a promise")

// main exits with status 1 for a broken promise or a failure, and 2 for wrong use.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:], os.Stdout)
	stop()
	var wrong usageError
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stderr, err)
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, "parley-bench:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "parley-bench:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "floor" {
		return runFloor(ctx, args[1:])
	}
	help := "usage: parley-bench COMMAND [FLAGS]; COMMAND -h lists the flags\n"
	for _, c := range commands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, args[1:], out)
		}
		help += fmt.Sprintf("  %-8s  %s\n", c.name, c.purpose)
	}
	return usageError{errors.New(help + "  floor     the yardstick itself, as load starts it\n")}
}

// usageError is a command line that the tool cannot run.
type usageError struct{ error }

// Unwrap returns the cause, such as flag.ErrHelp.
func (e usageError) Unwrap() error { return e.error }

// flagSet declares flags whose values have a lower bound or a list of choices. A value
// outside of them is a usageError.
type flagSet struct{ *flag.FlagSet }

// parseFlags reads args into the flags that define declares.
func parseFlags(name string, args []string, define func(*flagSet)) error {
	flags := &flagSet{flag.NewFlagSet(name, flag.ContinueOnError)}
	var help strings.Builder // the error, if there is one, and a list of all flags
	flags.SetOutput(&help)
	define(flags)
	if err := flags.Parse(args); err != nil {
		return usageError{fmt.Errorf("%w\n%s", err, &help)}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("%s takes no argument %q", name, flags.Arg(0))}
	}
	return nil
}

func (f *flagSet) number(target *int, name string, value, least int, usage string) {
	bound(f, target, name, value, least, usage, strconv.Atoi)
}

func (f *flagSet) float(target *float64, name string, value, least float64, usage string) {
	bound(f, target, name, value, least, usage, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
}

func (f *flagSet) duration(target *time.Duration, name string, value, least time.Duration, usage string) {
	bound(f, target, name, value, least, usage, time.ParseDuration)
}

// bound declares a flag whose value must be at least least.
func bound[T cmp.Ordered](f *flagSet, target *T, name string, value, least T, usage string, parse func(string) (T, error)) {
	f.Func(name, fmt.Sprintf("%s (default %v)", usage, value), func(text string) (err error) {
		if *target, err = parse(text); err == nil && *target < least {
			err = fmt.Errorf("must be at least %v", least)
		}
		return err
	})
	*target = value
}

// choice declares a flag whose value must be one of the choices.
func (f *flagSet) choice(target *string, name, value string, choices []string, usage string) {
	f.Func(name, fmt.Sprintf("%s: %s (default %q)", usage, strings.Join(choices, ", "), value), func(text string) error {
		if !slices.Contains(choices, text) && text != value {
			return fmt.Errorf("must be one of %v", choices)
		}
		*target = text
		return nil
	})
	*target = value
}

// seed declares the flag -seed. Its default, 0, means a new random seed.
func (f *flagSet) seed(target *uint64) {
	f.Uint64Var(target, "seed", 0, "seed of all random choices; 0 for a new one, which the tool prints")
}
