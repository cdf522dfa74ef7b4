package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver

	"parley/ingest/wake"
)

const (
	// readyWithin bounds the start of a process.
	readyWithin = 60 * time.Second
	// stopWithin bounds a process's end after SIGTERM.
	stopWithin = 15 * time.Second
)

// child is a program under test: the daemon or the floor. One goroutine at a time may
// start and end it. Scenarios with several such goroutines lock it.
type child struct {
	sync.Mutex

	binary  string
	args    []string
	dir     string // its working directory, which also has its log
	address string // host:port of its HTTP server

	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
	exitErr error         // valid after done
}

// newChild makes a directory in the run's directory and reserves a port, which the
// child keeps for all its starts.
func (b *bench) newChild(binary, name string) (*child, error) {
	dir := filepath.Join(b.work, name)
	if err := os.MkdirAll(filepath.Join(dir, "workspaces"), 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", name, err)
	}
	address, err := freeAddress()
	return &child{binary: binary, dir: dir, address: address}, err
}

// newDaemon prepares a daemon with one workspace. The agents are entries of the configuration,
// besides the echo agent. Without a database the daemon's store is SQLite.
func (b *bench) newDaemon(name string, d *database, agents, workspace string) (*child, error) {
	c, err := b.newChild(b.parley, name)
	if err != nil {
		return nil, err
	}
	c.args = []string{"run", "--config", "parley.yaml"}
	store := "sqlite:data/parley.db"
	if d != nil {
		store = d.url
	}
	daemon := fmt.Sprintf("listen: %s\nstore: %q\nlog: {level: warn, format: text}\nagents:\n  - {id: echo, kind: echo}\n%s", c.address, store, agents)
	return c, errors.Join(c.write("parley.yaml", daemon), c.write("workspaces/bench.yaml", workspace))
}

// write writes a file in the child's directory.
func (c *child) write(name, text string) error {
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

// name identifies the child in its calls of the fake API.
func (c *child) name() string { return filepath.Base(c.dir) }

func (c *child) logPath() string { return filepath.Join(c.dir, "log") }

func (c *child) storePath() string { return filepath.Join(c.dir, "data", "parley.db") }

// start starts the process. It returns when the process is ready, with the time that
// this took.
func (c *child) start(ctx context.Context) (time.Duration, error) {
	log, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open the log of %s: %w", c.name(), err)
	}
	defer log.Close()
	c.cmd = exec.Command(c.binary, c.args...)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = c.dir, log, log
	begun := time.Now()
	if err := c.cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", c.name(), err)
	}
	done := make(chan struct{})
	c.done = done
	go func() {
		c.exitErr = c.cmd.Wait()
		close(done)
	}()
	if err := c.awaitReady(ctx); err != nil {
		return 0, errors.Join(err, c.kill())
	}
	return time.Since(begun), nil
}

// awaitReady calls /readyz until it answers 200.
func (c *child) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		status, err := c.get(ctx, "/readyz")
		if status == http.StatusOK {
			return nil
		}
		if err := c.alive(); err != nil {
			return err
		}
		if !wake.After(ctx, time.Millisecond) {
			return fmt.Errorf("%s is not ready after %v (status %d, %w)\n%s", c.name(), readyWithin, status, err, c.logTail())
		}
	}
}

// get returns the status of a GET.
func (c *child) get(ctx context.Context, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	response, err := c.request(ctx, http.MethodGet, path, http.Header{"Connection": {"close"}}, "")
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// request sends one request to the process.
func (c *child) request(ctx context.Context, method, path string, header http.Header, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = header
	return http.DefaultClient.Do(request)
}

// kill sends SIGKILL and waits for the process's end. It does nothing if the process was
// not started.
func (c *child) kill() error {
	if c.cmd == nil || c.cmd.Process == nil {
		return nil
	}
	err := c.cmd.Process.Kill()
	<-c.done
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.name(), err)
	}
	return nil
}

// alive returns an error if the process has ended by itself.
func (c *child) alive() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s ended by itself: %w\n%s", c.name(), c.exitErr, c.logTail())
	default:
		return nil
	}
}

// stop sends SIGTERM and waits for the process's end. It returns an error if the exit
// status is not 0 or the process does not end within stopWithin.
func (c *child) stop() error {
	if err := c.alive(); err != nil {
		return err
	}
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-time.After(stopWithin):
		return errors.Join(fmt.Errorf("%s did not stop within %v", c.name(), stopWithin), c.kill())
	}
	if c.exitErr != nil {
		return fmt.Errorf("stop %s: %w\n%s", c.name(), c.exitErr, c.logTail())
	}
	return nil
}

func (c *child) signal(signal syscall.Signal) error {
	if err := c.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("send %v to %s: %w", signal, c.name(), err)
	}
	return nil
}

// suspendWithin bounds the time until a process reacts to SIGSTOP.
const suspendWithin = time.Second

// suspend sends SIGSTOP and returns when the process no longer runs. SIGCONT resumes it.
func (c *child) suspend() error {
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for begun := time.Now(); time.Since(begun) < suspendWithin; {
		if p := readProcess(c.pid()); p.state == "T" {
			return nil
		}
	}
	return fmt.Errorf("suspend %s: it still runs after %v", c.name(), suspendWithin)
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// logTail returns the last 4,000 bytes of the process's log.
func (c *child) logTail() string {
	text, err := os.ReadFile(c.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// nodes are the processes of one trial and the store that they share.
type nodes struct {
	all      []*child
	database *database // nil for SQLite
	store    *sql.DB   // a connection to the store beside the daemons
	deaths   []death   // by crashOne
}

// newNodes makes a store and the bench's number of processes. newChild gets the name
// that identifies the process at the fake API.
func (b *bench) newNodes(ctx context.Context, name string, newChild func(name string, d *database) (*child, error)) (n *nodes, err error) {
	n = &nodes{}
	if b.postgres != "" {
		if n.database, err = b.newDatabase(ctx, b.postgres); err != nil {
			return nil, err
		}
	}
	for i := range b.daemons {
		c, err := newChild(fmt.Sprintf("%s-%d", name, i), n.database)
		if err != nil {
			return nil, err
		}
		b.onClose(c.kill)
		n.all = append(n.all, c)
	}
	if n.store, err = n.openStore(); err != nil {
		return nil, err
	}
	// An idle connection would keep the store's WAL index valid after a kill -9. So the
	// daemon would not have to recover the WAL.
	n.store.SetMaxIdleConns(-1)
	b.onClose(n.store.Close)
	return n, nil
}

// startNodes is newNodes, and returns when the processes are ready.
func (b *bench) startNodes(ctx context.Context, name string, newChild func(name string, d *database) (*child, error)) (*nodes, error) {
	n, err := b.newNodes(ctx, name, newChild)
	if err != nil {
		return nil, err
	}
	return n, n.start(ctx)
}

// start starts all nodes at the same time, and returns when they are ready.
func (n *nodes) start(ctx context.Context) error {
	return n.each(func(c *child) error {
		_, err := c.start(ctx)
		return err
	})
}

// stop sends SIGTERM to all nodes, and returns when they have ended.
func (n *nodes) stop() error { return n.each((*child).stop) }

// alive returns an error if a node has ended by itself.
func (n *nodes) alive() error { return n.each((*child).alive) }

// each calls do for all nodes concurrently.
func (n *nodes) each(do func(*child) error) error {
	errs := make([]error, len(n.all))
	var group sync.WaitGroup
	for i, c := range n.all {
		group.Go(func() { errs[i] = do(c) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// lockOne locks a random node that is not locked. If all are locked, it waits for one.
func (n *nodes) lockOne(random *rand.Rand) *child {
	order := random.Perm(len(n.all))
	for _, i := range order {
		if n.all[i].TryLock() {
			return n.all[i]
		}
	}
	c := n.all[order[0]]
	c.Lock()
	return c
}

// crashOne kills a random node, notes its death, and starts it again.
func (n *nodes) crashOne(ctx context.Context, random *rand.Rand) error {
	c := n.lockOne(random)
	defer c.Unlock()
	begun := time.Now()
	if err := c.kill(); err != nil {
		return err
	}
	n.deaths = append(n.deaths, death{begun, time.Now()})
	_, err := c.start(ctx)
	return err
}

// processes returns the sums of the nodes' CPU times since their start and of their memory.
// Shared pages count for each node.
func (n *nodes) processes() (sum process) {
	for _, c := range n.all {
		one := readProcess(c.pid())
		sum.cpu += one.cpu
		sum.memory = memory{sum.memory.now + one.memory.now, sum.memory.peak + one.memory.peak}
	}
	return sum
}

func (n *nodes) memory() memory { return n.processes().memory }

// growth returns the most that the nodes' memory grows until ctx ends, in bytes.
func (n *nodes) growth(ctx context.Context) (most int64) {
	before := n.memory().now
	for wake.After(ctx, 50*time.Millisecond) {
		most = max(most, n.memory().now-before)
	}
	return most
}

// logTail returns the end of each node's log.
func (n *nodes) logTail() string {
	var text strings.Builder
	for _, c := range n.all {
		fmt.Fprintf(&text, "%s:\n%s\n", c.name(), c.logTail())
	}
	return text.String()
}

// backlog counts the unfinished work in the daemons' store.
type backlog struct{ envelopes, turns, runs, deliveries, gaps int64 }

func (b backlog) String() string {
	return fmt.Sprintf("%d envelopes, %d messages without a turn, %d runs, %d deliveries, %d gaps", b.envelopes, b.turns, b.runs, b.deliveries, b.gaps)
}

func (n *nodes) backlog(ctx context.Context) (b backlog, err error) {
	err = n.store.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM envelopes WHERE state = 'pending'),
		(SELECT count(*) FROM messages WHERE trigger = 'run' AND run IS NULL),
		(SELECT count(*) FROM threads WHERE run_id IS NOT NULL),
		(SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending')),
		(SELECT count(*) FROM gaps)`).
		Scan(&b.envelopes, &b.turns, &b.runs, &b.deliveries, &b.gaps)
	if err != nil {
		return b, fmt.Errorf("read the daemons' backlog: %w", err)
	}
	return b, nil
}

// settle waits until the daemons have no unfinished work and missing describes nothing; missing
// may change that work. settle returns what is left if the time limit passes or a daemon ends;
// empty for nothing.
func (n *nodes) settle(ctx context.Context, within time.Duration, missing func(work *backlog) string) (left string) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	left = "the store could not be read"
	for {
		if work, err := n.backlog(ctx); err == nil {
			more := missing(&work)
			if work == (backlog{}) && more == "" {
				return ""
			}
			left = fmt.Sprintf("%v, %s", work, more)
		}
		if n.alive() != nil || !wake.After(ctx, 50*time.Millisecond) {
			return left
		}
	}
}

// openStore opens the daemons' store. The connection is made by the first statement.
func (n *nodes) openStore() (*sql.DB, error) {
	if n.database != nil {
		return openDatabase(n.database.url)
	}
	path := (&url.URL{Path: n.all[0].storePath()}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("open the daemon's store: %w", err)
	}
	return db, nil
}
