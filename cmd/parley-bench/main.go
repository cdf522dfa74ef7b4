// Parley-bench loads a Parley daemon, kills it, freezes its store, and keeps a
// ledger of what it acknowledged and what it answered.
//
// The daemon runs as a child process on a loopback port, or several do on one
// PostgreSQL, each with a port of its own and Slack's calls spread over all. Slack is played by this
// process: it signs and posts events as Slack does, it is the Web API to which
// the daemon posts its replies, and, where an agent other than echo is asked
// for, the model behind an OpenAI-compatible API. The floor, a program that
// does the least that the same promises allow, runs beside the daemon as the
// yardstick: absolute figures change with the machine, the ratio does not.
//
// One subcommand measures nothing: slack plays Slack for whoever wants to try a
// set-up of their own by hand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// command is one of the tool's subcommands.
type command struct {
	name, does string
	run        func(ctx context.Context, args []string, out io.Writer) error
}

func commands() []command {
	return []command{
		{"load", "durable messages a second, acknowledgement times, CPU and memory, beside the floor", runLoad},
		{"kill", "kill -9 under load, and a ledger of what was promised", runKill},
		{"cluster", "several daemons on one PostgreSQL: killed, stopped, cut off, and the same ledger", runCluster},
		{"sockets", "Socket Mode whose sockets are taken away under load, and the same ledger", runSockets},
		{"restarts", "what is said while the daemon is down is answered after each start, and the same ledger", runRestarts},
		{"tenants", "one workspace beside others whose Slack is slow or refuses them", runTenants},
		{"pace", "several daemons and the pace that one channel takes", runPace},
		{"slow", "how long many threads wait for a slow agent", runSlow},
		{"scale", "memory and start-up time with many threads and a large store", runScale},
		{"freeze", "the store locked by another process under load", runFreeze},
		{"slack", "a Slack to try a set-up against, played by hand on stdin and stdout", func(ctx context.Context, args []string, out io.Writer) error {
			return playSlack(ctx, args, os.Stdin, out)
		}},
		{"floor", "the yardstick itself, as load starts it", runFloor},
	}
}

// errViolated says that the run itself went well and the daemon did not.
var errViolated = errors.New("the daemon broke a promise")

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

// usageError is a command line that can't be run.
type usageError struct{ error }

// Unwrap gives the flags' own error, such as that help was asked for.
func (e usageError) Unwrap() error { return e.error }

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(ctx, args[1:], out)
			}
		}
	}
	words := "usage: parley-bench COMMAND [FLAGS]; COMMAND -h lists the flags\n"
	for _, c := range commands() {
		words += fmt.Sprintf("  %-8s %s\n", c.name, c.does)
	}
	return usageError{errors.New(words)}
}

// parseFlags reads args into the flags that define sets up.
func parseFlags(name string, args []string, define func(*flag.FlagSet)) error {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	var words strings.Builder // the fault, if there is one, and all flags
	flags.SetOutput(&words)
	define(flags)
	if err := flags.Parse(args); err != nil {
		return usageError{fmt.Errorf("%w\n%s", err, &words)}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("%s takes no argument %q", name, flags.Arg(0))}
	}
	return nil
}
