package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver

	"parley/cmd/parley-bench/internal/figure"
	"parley/ingest/wake"
)

const (
	// readyWithin bounds the start of a process.
	readyWithin = 60 * time.Second
	// StopWithin bounds a process's end after SIGTERM.
	StopWithin = 15 * time.Second
)

// Child is a program under test: the daemon or the floor. One goroutine at a time may
// start and end it. Scenarios with several such goroutines lock it.
type Child struct {
	sync.Mutex

	binary  string
	Args    []string
	dir     string // its working directory, which also has its log
	Address string // host:port of its HTTP server

	Cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
	exitErr error         // valid after done
}

// NewChild makes a directory in the run's directory and reserves a port, which the
// child keeps for all its starts.
func (b *Bench) NewChild(binary, name string) (*Child, error) {
	dir := filepath.Join(b.Work, name)
	if err := os.MkdirAll(filepath.Join(dir, "workspaces"), 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", name, err)
	}
	address, err := freeAddress()
	return &Child{binary: binary, dir: dir, Address: address}, err
}

// The workspace under test. The floor has the same hook and secret.
const (
	Workspace     = "bench"
	HookPath      = "/hooks/slack/" + Workspace
	SigningSecret = "bench-signing-secret"
)

// NewDaemon prepares a daemon with one workspace. The agents are entries of the configuration,
// besides the echo agent. Without a database the daemon's store is SQLite.
func (b *Bench) NewDaemon(name string, d *Database, agents, workspace string) (*Child, error) {
	c, err := b.NewChild(b.parley, name)
	if err != nil {
		return nil, err
	}
	c.Args = []string{"run", "--config", "parley.yaml"}
	store := "sqlite:data/parley.db"
	if d != nil {
		store = d.URL
	}
	daemon := fmt.Sprintf("listen: %s\nstore: %q\nlog: {level: warn, format: text}\nagents:\n  - {id: echo, kind: echo}\n%s", c.Address, store, agents)
	return c, errors.Join(c.write("parley.yaml", daemon), c.write("workspaces/bench.yaml", workspace))
}

// write writes a file in the child's directory.
func (c *Child) write(name, text string) error {
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// By default, Linux takes no ports of this range for outgoing connections. So no other
// program takes such a port between two starts of a child.
const firstPort, lastPort = 20_000, 32_767

func freeAddress() (string, error) {
	for tries := 0; ; tries++ {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort+1))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		if tries == 100 {
			return "", fmt.Errorf("find a free port: %w", err)
		}
	}
}

// Name identifies the child in its calls of the fake API.
func (c *Child) Name() string { return filepath.Base(c.dir) }

func (c *Child) logPath() string { return filepath.Join(c.dir, "log") }

// StorePath returns the file of the process's store on SQLite.
func (c *Child) StorePath() string { return filepath.Join(c.dir, "data", "parley.db") }

// Start starts the process. It returns when the process is ready, with the time that
// this took.
func (c *Child) Start(ctx context.Context) (time.Duration, error) {
	log, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open the log of %s: %w", c.Name(), err)
	}
	defer log.Close()
	c.Cmd = exec.Command(c.binary, c.Args...)
	c.Cmd.Dir, c.Cmd.Stdout, c.Cmd.Stderr = c.dir, log, log
	begun := time.Now()
	if err := c.Cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", c.Name(), err)
	}
	done := make(chan struct{})
	c.done = done
	go func() {
		c.exitErr = c.Cmd.Wait()
		close(done)
	}()
	if err := c.awaitReady(ctx); err != nil {
		return 0, errors.Join(err, c.Kill())
	}
	return time.Since(begun), nil
}

// awaitReady calls /readyz until it answers 200.
func (c *Child) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		status, err := c.Get(ctx, "/readyz")
		if status == http.StatusOK {
			return nil
		}
		if err := c.Alive(); err != nil {
			return err
		}
		if !wake.After(ctx, time.Millisecond) {
			return fmt.Errorf("%s is not ready after %v (status %d, %w)\n%s", c.Name(), readyWithin, status, err, c.logTail())
		}
	}
}

// Get returns the status of a GET.
func (c *Child) Get(ctx context.Context, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	response, err := c.Request(ctx, http.MethodGet, path, http.Header{"Connection": {"close"}}, "")
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Request sends one request to the process.
func (c *Child) Request(ctx context.Context, method, path string, header http.Header, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.Address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = header
	return http.DefaultClient.Do(request)
}

// Kill sends SIGKILL and waits for the process's end. It does nothing if the process was
// not started.
func (c *Child) Kill() error {
	if c.Cmd == nil || c.Cmd.Process == nil {
		return nil
	}
	err := c.Cmd.Process.Kill()
	<-c.done
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.Name(), err)
	}
	return nil
}

// Alive returns an error if the process has ended by itself.
func (c *Child) Alive() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s ended by itself: %w\n%s", c.Name(), c.exitErr, c.logTail())
	default:
		return nil
	}
}

// Stop sends SIGTERM and waits for the process's end. It returns an error if the exit
// status is not 0 or the process does not end within StopWithin.
func (c *Child) Stop() error {
	if err := c.Alive(); err != nil {
		return err
	}
	if err := c.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-time.After(StopWithin):
		return errors.Join(fmt.Errorf("%s did not stop within %v", c.Name(), StopWithin), c.Kill())
	}
	if c.exitErr != nil {
		return fmt.Errorf("stop %s: %w\n%s", c.Name(), c.exitErr, c.logTail())
	}
	return nil
}

// Signal sends the process a signal, and does not wait for its effect.
func (c *Child) Signal(signal syscall.Signal) error {
	if err := c.Cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("send %v to %s: %w", signal, c.Name(), err)
	}
	return nil
}

// suspendWithin bounds the time until a process reacts to SIGSTOP.
const suspendWithin = time.Second

// Suspend sends SIGSTOP and returns when the process no longer runs. SIGCONT resumes it.
func (c *Child) Suspend() error {
	if err := c.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for begun := time.Now(); time.Since(begun) < suspendWithin; {
		if p := figure.ReadProcess(c.PID()); p.State == "T" {
			return nil
		}
	}
	return fmt.Errorf("suspend %s: it still runs after %v", c.Name(), suspendWithin)
}

// PID returns the process's id.
func (c *Child) PID() int { return c.Cmd.Process.Pid }

// logTail returns the last 4,000 bytes of the process's log.
func (c *Child) logTail() string {
	text, err := os.ReadFile(c.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
