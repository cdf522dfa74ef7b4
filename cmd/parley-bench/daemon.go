package main

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
	"sync"
	"syscall"
	"time"
)

const (
	// readyWithin bounds the wait for a process that was just started.
	readyWithin = 60 * time.Second
	// stopWithin bounds the wait for a process that was asked to stop.
	stopWithin = 15 * time.Second
)

// child is a program under test: the daemon, or the floor. It is started, killed
// and started again by one goroutine at a time, which holds it where there are
// several.
type child struct {
	held sync.Mutex

	binary  string
	args    []string
	dir     string // its working directory; its log is there too
	address string // host:port of its HTTP server
	client  *http.Client

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	fate error         // how it ended; read after done
}

// newChild is a program that will listen on a free port of this machine, which
// is the same after each start.
func newChild(binary, dir string) (*child, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return &child{
		binary: binary, dir: dir, address: address,
		client: &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}, nil
}

// Ports from which Linux takes none for outgoing connections, as it is delivered:
// nobody takes such a port while its program is being started again.
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

// name is what the child's calls of the fake API carry.
func (c *child) name() string { return filepath.Base(c.dir) }

func (c *child) logPath() string { return filepath.Join(c.dir, "log") }

// start starts the process and returns when it is ready, with the time that took.
func (c *child) start(ctx context.Context) (time.Duration, error) {
	log, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open the child's log: %w", err)
	}
	defer log.Close()
	c.cmd = exec.Command(c.binary, c.args...)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = c.dir, log, log
	begun := time.Now()
	if err := c.cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the child: %w", err)
	}
	done := make(chan struct{})
	c.done = done
	go func() {
		c.fate = c.cmd.Wait()
		close(done)
	}()
	if err := c.awaitReady(ctx); err != nil {
		return 0, errors.Join(err, c.kill())
	}
	return time.Since(begun), nil
}

// awaitReady asks /readyz until it answers 200.
func (c *child) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		status, err := c.get(ctx, "/readyz")
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("%s ended before it was ready: %w\n%s", filepath.Base(c.binary), c.fate, c.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v (status %d, %w)\n%s", filepath.Base(c.binary), readyWithin, status, err, c.logTail())
		case <-time.After(time.Millisecond):
		}
	}
}

// get returns the status of a GET.
func (c *child) get(ctx context.Context, path string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address+path, nil)
	if err != nil {
		return 0, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// kill ends the process with SIGKILL and returns when it is gone.
func (c *child) kill() error {
	if c.cmd == nil || c.cmd.Process == nil {
		return nil
	}
	err := c.cmd.Process.Kill()
	<-c.done
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the child: %w", err)
	}
	return nil
}

// alive is an error where the process has ended by itself.
func (c *child) alive() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s ended by itself: %v\n%s", filepath.Base(c.binary), c.fate, c.logTail())
	default:
		return nil
	}
}

// stop asks the process to end, as an operator does, and returns when it is gone.
func (c *child) stop() error {
	if err := c.alive(); err != nil {
		return err
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the child: %w", err)
	}
	select {
	case <-c.done:
	case <-time.After(stopWithin):
		return errors.Join(fmt.Errorf("%s did not stop within %v", filepath.Base(c.binary), stopWithin), c.kill())
	}
	if c.fate != nil {
		return fmt.Errorf("%s did not stop well: %w\n%s", filepath.Base(c.binary), c.fate, c.logTail())
	}
	return nil
}

// end makes sure that the process is gone, on whatever way out.
func (c *child) end() {
	if c.cmd != nil {
		_ = c.kill() // what can't be killed has ended
	}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// logTail is the end of what the process has said.
func (c *child) logTail() string {
	text, err := os.ReadFile(c.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// freezeWithin bounds the wait until a process that was stopped stands.
const freezeWithin = time.Second

// freeze stops the process as it stands, and returns when it does.
func (c *child) freeze() error {
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze the child: %w", err)
	}
	for begun := time.Now(); time.Since(begun) < freezeWithin; {
		if p, err := readProcess(c.pid()); err != nil || p.state == "T" {
			return err
		}
	}
	return fmt.Errorf("freeze the child: it runs %v later", freezeWithin)
}

// thaw lets it go on.
func (c *child) thaw() error {
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("thaw the child: %w", err)
	}
	return nil
}
