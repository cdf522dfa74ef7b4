// Parley-fake plays a chat platform in the terminal, so that anybody can try a Parley
// configuration without an account.
//
//	go run ./cmd/parley-fake slack
//
// It prints the workspace file for a daemon and shows every action of the bot. It sends
// each typed line to the daemon as a message of a person.
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

// platform is one platform that the command can play.
type platform struct {
	name, purpose string
	// run plays the platform until the input or ctx ends.
	run func(ctx context.Context, args []string, in io.Reader, out io.Writer) error
}

func platforms() []platform {
	return []platform{
		{"slack", "a Slack workspace with one person, over Socket Mode or HTTP", playSlack},
	}
}

// usageError is a command line that the command cannot run.
type usageError struct{ error }

// Unwrap returns the cause, such as flag.ErrHelp.
func (e usageError) Unwrap() error { return e.error }

// main exits with status 1 for a failure and 2 for wrong use.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	var wrong usageError
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stderr, err)
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, "parley-fake:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "parley-fake:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	help := "usage: parley-fake PLATFORM [FLAGS]; PLATFORM -h lists the flags\n"
	for _, p := range platforms() {
		if len(args) > 0 && args[0] == p.name {
			return p.run(ctx, args[1:], in, out)
		}
		help += fmt.Sprintf("  %-12s %s\n", p.name, p.purpose)
	}
	return usageError{errors.New(help)}
}

// parseFlags reads args into the flags that define declares.
func parseFlags(name string, args []string, define func(*flag.FlagSet)) error {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
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
