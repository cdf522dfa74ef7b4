package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"parley/adapters/slack/slacktest"
)

// common are the flags of every subcommand that starts a daemon.
type common struct {
	parley string
	dir    string
	keep   bool
}

func (c *common) define(flags *flag.FlagSet) {
	flags.StringVar(&c.parley, "parley", "", "the daemon's binary; it is built where this is empty")
	flags.StringVar(&c.dir, "dir", "", "where the run's directory is made; the system's place for temporary files where this is empty")
	flags.BoolVar(&c.keep, "keep", false, "keep the run's directory")
}

// bench is one run of a subcommand: a directory, and the binary under test.
type bench struct {
	common
	work      string // the directory of this run
	out       io.Writer
	databases []*database // of this run, on PostgreSQL
}

// open makes the run's directory and builds what was not given.
func (c common) open(ctx context.Context, out io.Writer) (*bench, error) {
	work, err := os.MkdirTemp(c.dir, "parley-bench-")
	if err != nil {
		return nil, fmt.Errorf("make the run's directory: %w", err)
	}
	b := &bench{common: c, work: work, out: out}
	if b.parley, err = binary(ctx, c.parley, filepath.Join(work, "parley")); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	return b, nil
}

// binary is the absolute path of the daemon's program, which is built to target
// where none is given.
func binary(ctx context.Context, given, target string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", target, "parley/cmd/parley")
	if words, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the daemon (or name one with -parley): %w\n%s", err, words)
	}
	return target, nil
}

// close removes what the run has made, also where ctx has ended.
func (b *bench) close(ctx context.Context) error {
	if b.keep {
		b.printf("kept: %s\n", b.work)
	}
	var errs []error
	for _, d := range b.databases {
		if b.keep {
			b.printf("kept: database %s\n", d.name)
			errs = append(errs, d.admin.Close())
			continue
		}
		errs = append(errs, d.drop(ctx))
	}
	if !b.keep {
		errs = append(errs, os.RemoveAll(b.work))
	}
	return errors.Join(errs...)
}

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }

// speakers are the people who write the messages.
const speakers = 20

func speaker(n int) string { return fmt.Sprintf("U0HUMAN%02d", n%speakers) }

// startAPI starts the fake of Slack's API with everybody in its directory.
func startAPI(options slacktest.Options) (*slacktest.Server, error) {
	api, err := slacktest.Start(options)
	if err != nil {
		return nil, err
	}
	for n := range speakers {
		api.AddUser(slacktest.User{ID: speaker(n), Name: fmt.Sprintf("human%d", n), DisplayName: fmt.Sprintf("Human %d", n)})
	}
	return api, nil
}

// pause waits, or returns early with false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
