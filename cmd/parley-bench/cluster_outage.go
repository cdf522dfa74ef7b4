package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// outage is a time without the server, which a command of the operator's makes.
type outage struct {
	command string // of the shell; empty for none

	mu           sync.Mutex
	begun, ended time.Time // zero where it has not
}

// outageWithin bounds the command, and after it the wait for the server.
const outageWithin = 2 * time.Minute

// strike takes the server away in the middle phase, when about half of its kills
// are done.
func (c *clustering) strike(ctx context.Context, phase int) error {
	if c.outage.command == "" || phase != len(crowds())/2 {
		return nil
	}
	half := time.Duration(c.killing.kills/len(crowds())/2) * c.profile.after / 2
	if !pause(ctx, half) {
		return ctx.Err()
	}
	return c.outage.run(ctx, c.nodes.database, filepath.Join(c.work, "outage"))
}

// run runs the command, which says what it does into a file of that path, and
// returns when the server answers again. The command is run to its end also where
// ctx has ended: half of it would leave no server behind.
func (o *outage) run(ctx context.Context, d *database, path string) error {
	log, err := os.Create(path) // a file, since a server that is started keeps it open
	if err != nil {
		return fmt.Errorf("open the outage's log: %w", err)
	}
	defer log.Close()
	d.admin.SetMaxIdleConns(-1) // none may be left over from before
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), outageWithin)
	defer cancel()
	command := exec.CommandContext(within, "sh", "-c", o.command)
	command.Stdout, command.Stderr = log, log
	o.mark(&o.begun)
	if err := command.Run(); err != nil {
		words, _ := os.ReadFile(path) // the command's fate is told in any case
		return fmt.Errorf("%s: %w\n%s", o.command, err, words)
	}
	for err := d.admin.PingContext(within); err != nil; err = d.admin.PingContext(within) {
		if !pause(within, 20*time.Millisecond) {
			return fmt.Errorf("PostgreSQL is not back after %v: %w", outageWithin, err)
		}
	}
	o.mark(&o.ended)
	return nil
}

func (o *outage) mark(at *time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*at = time.Now()
}

// during says whether the server was away at some time since then.
func (o *outage) during(since time.Time) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.begun.IsZero() && (o.ended.IsZero() || o.ended.After(since))
}

// String is a line about it; empty where there was none.
func (o *outage) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended.IsZero() {
		return ""
	}
	return fmt.Sprintf("PostgreSQL was away for %v\n", o.ended.Sub(o.begun).Round(time.Millisecond))
}
