// Package command runs the command line of a program: its subcommands, their flags, and
// the exit status.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// UsageError is a command line that the program cannot run.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause, such as flag.ErrHelp.
func (e UsageError) Unwrap() error { return e.Err }

// ExitError is a failure with an exit status of its own.
type ExitError struct {
	Status int
	Err    error
}

func (e ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e ExitError) Unwrap() error { return e.Err }

// Main runs a program with the process's arguments until it ends; SIGINT and SIGTERM end
// its context. Main never returns: it exits with status 0, 1 for a failure, 2 for a
// UsageError, or the status of an ExitError.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil:
		os.Exit(0)
	case errors.Is(err, flag.ErrHelp):
		fmt.Println(strings.TrimPrefix(err.Error(), flag.ErrHelp.Error()+"\n"))
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if _, wrong := errors.AsType[UsageError](err); wrong {
		os.Exit(2)
	}
	if exit, ok := errors.AsType[ExitError](err); ok {
		os.Exit(exit.Status)
	}
	os.Exit(1)
}

// Command is one subcommand.
type Command struct {
	Name, Purpose string
	Run           func(ctx context.Context, args []string) error
}

// Dispatch runs the command that the first argument names. Without one, it returns a
// UsageError with a usage line and a list of the commands. Its cause is flag.ErrHelp if the
// argument asks for help.
func Dispatch(ctx context.Context, usage string, commands []Command, args []string) error {
	help := usage + "\n"
	for _, c := range commands {
		if len(args) > 0 && args[0] == c.Name {
			return c.Run(ctx, args[1:])
		}
		help += fmt.Sprintf("  %-11s  %s\n", c.Name, c.Purpose)
	}
	if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		return UsageError{Err: fmt.Errorf("%w\n%s", flag.ErrHelp, help)}
	}
	return UsageError{Err: errors.New(help)}
}

// ParseFlags reads args into the flags that define declares. It returns a UsageError.
func ParseFlags(name string, args []string, define func(*flag.FlagSet)) error {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	var help strings.Builder // the error, if there is one, and a list of all flags
	flags.SetOutput(&help)
	define(flags)
	if err := flags.Parse(args); err != nil {
		return UsageError{Err: fmt.Errorf("%w\n%s", err, &help)}
	}
	if flags.NArg() > 0 {
		return UsageError{Err: fmt.Errorf("%s takes no argument %q", name, flags.Arg(0))}
	}
	return nil
}
