package command_test

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"

	"parley/cmd/internal/command"
)

// runOne dispatches args to one command with the flag -n.
func runOne(t *testing.T, args ...string) (n int, err error) {
	t.Helper()
	err = command.Dispatch(t.Context(), "usage: test COMMAND", []command.Command{{
		Name: "one", Purpose: "the only command",
		Run: func(_ context.Context, args []string) error {
			return command.ParseFlags("one", args, func(f *flag.FlagSet) { f.IntVar(&n, "n", 1, "a number") })
		},
	}}, args)
	return n, err
}

func TestCommandGetsItsFlags(t *testing.T) {
	if n, err := runOne(t, "one", "-n=7"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestWrongUse(t *testing.T) {
	for want, args := range map[string][]string{
		"the only command": nil, "one ": {"two"}, "takes no argument": {"one", "extra"}, "-n int": {"one", "-x"},
	} {
		_, err := runOne(t, args...)
		if _, wrong := errors.AsType[command.UsageError](err); !wrong || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want a UsageError with %q", args, err, want)
		}
	}
}

func TestHelpIsTheCause(t *testing.T) {
	if _, err := runOne(t, "one", "-h"); !errors.Is(err, flag.ErrHelp) || !strings.Contains(err.Error(), "a number") {
		t.Errorf("error %v", err)
	}
	if _, err := runOne(t, "--help"); !errors.Is(err, flag.ErrHelp) || !strings.Contains(err.Error(), "the only command") {
		t.Errorf("error %v", err)
	}
}
