// Parley-bench measures a Parley daemon under load and tests its promises under
// faults: kills, broken connections, attacks, a Slack that fails.
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
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/cmd/internal/command"
)

// scenario is a measurement or a fault test of the daemon.
type scenario interface {
	// define declares the scenario's flags with their defaults.
	define(f *flagSet)
	// run prints the figures. It returns errViolated if the daemon broke a promise.
	run(ctx context.Context, b *bench) error
}

// subcommand is one scenario with its place in the command line.
type subcommand struct {
	name, purpose string
	// daemons is the default number of daemons; 0 for a scenario that runs exactly one
	// daemon on SQLite.
	daemons  int
	scenario scenario
}

func scenarios() []subcommand {
	return []subcommand{
		{"load", "durable messages per second, acknowledgement times, CPU and memory, beside the floor", 1, &load{}},
		{"kill", "kill -9 under load, with faults of Slack or a slow model", 1, &kill{}},
		{"cluster", "several daemons on one PostgreSQL: killed, suspended, disconnected from the database", 4, &cluster{}},
		{"sockets", "Socket Mode with forced disconnects under load", 1, &sockets{}},
		{"gateway", "Discord's gateway with dropped connections, restarts and a burst", 1, &gateway{}},
		{"edits", "kill -9 while an answer stands half in Discord, with faults of its API", 0, &edits{}},
		{"imessage", "BlueBubbles with lost, doubled and week-old webhooks, sends without an answer, and kills during sends", 1, &imessage{}},
		{"restarts", "messages during the daemon's downtime, and their answers after each start", 0, &restarts{}},
		{"agents", "the first token, and kills, for each kind of agent", 1, &agents{}},
		{"scale", "memory and start-up time with a large store", 0, &scale{}},
		{"doors", "attacks of unknown callers beside Slack's messages", 0, &doors{}},
		{"follow", "many clients that follow runs on several daemons, one of which is killed", 2, &follow{}},
	}
}

// errViolated reports that the scenario was completed and the daemon broke a promise.
var errViolated = errors.New("the daemon broke a promise")

func main() {
	command.Main("parley-bench", func(ctx context.Context, args []string) error { return dispatch(ctx, args, os.Stdout) })
}

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	all := []command.Command{{Name: "floor", Purpose: "the yardstick itself, as load starts it", Run: runFloor}}
	for _, s := range scenarios() {
		all = append(all, command.Command{Name: s.name, Purpose: s.purpose, Run: func(ctx context.Context, args []string) error {
			return s.start(ctx, args, out)
		}})
	}
	return command.Dispatch(ctx, "usage: parley-bench COMMAND [FLAGS]; COMMAND -h lists the flags", all, args)
}

// flagSet declares flags whose values have a lower bound or a list of choices. A value
// outside of them is wrong use.
type flagSet struct{ *flag.FlagSet }

func (f *flagSet) number(target *int, name string, value, least int, usage string) {
	bound(f, target, name, value, least, usage, strconv.Atoi)
}

func (f *flagSet) float(target *float64, name string, value, least float64, usage string) {
	bound(f, target, name, value, least, usage, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
}

func (f *flagSet) duration(target *time.Duration, name string, value, least time.Duration, usage string) {
	bound(f, target, name, value, least, usage, time.ParseDuration)
}

// choice declares a flag whose value must be one of the choices.
func (f *flagSet) choice(target *string, name, value string, choices []string, usage string) {
	bound(f, target, name, value, "", fmt.Sprintf("%s: %s", usage, strings.Join(choices, ", ")), func(text string) (string, error) {
		if !slices.Contains(choices, text) && text != value {
			return "", fmt.Errorf("must be one of %v", choices)
		}
		return text, nil
	})
}

// bound declares a flag whose value must be at least least.
func bound[T cmp.Ordered](f *flagSet, target *T, name string, value, least T, usage string, parse func(string) (T, error)) {
	*target = value
	f.Var(limited[T]{target, least, parse}, name, usage)
}

// limited is the value of a flag.
type limited[T cmp.Ordered] struct {
	target *T // nil only in the zero value, which package flag makes
	least  T
	parse  func(string) (T, error)
}

// Set reads the value from the command line.
func (l limited[T]) Set(text string) (err error) {
	if *l.target, err = l.parse(text); err == nil && *l.target < l.least {
		err = fmt.Errorf("must be at least %v", l.least)
	}
	return err
}

// String returns the value.
func (l limited[T]) String() string {
	if l.target == nil {
		return ""
	}
	return fmt.Sprint(*l.target)
}
