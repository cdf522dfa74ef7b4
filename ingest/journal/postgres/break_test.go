package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/storage"
)

func TestABreakBeforeCommitIsRetried(t *testing.T) {
	t.Parallel()
	p := through(t, database(t))
	e := engine(t, postgres.Options{URL: p.url})
	p.set(at("INSERT INTO facts (name) VALUES ($1)", cut))
	runs := 0
	write(t, e, func(tx storage.Tx) error { runs++; return insert("a")(tx) })
	if diff := cmp.Diff([]string{"a"}, names(t, e)); diff != "" || runs != 2 {
		t.Errorf("after %d runs: %s", runs, diff)
	}
}

func TestABreakAtCommitIsUnclear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule func(message) verdict
		want []string
	}{
		"before COMMIT":     {at("COMMIT", cut), nil},
		"before the answer": {at("COMMIT", deaf), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := through(t, database(t))
			e := engine(t, postgres.Options{URL: p.url})
			p.set(c.rule)
			runs := 0
			err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error { runs++; return insert("a")(tx) })
			if !errors.Is(err, storage.ErrUnclear) || !storage.Unavailable(err) || runs != 1 {
				t.Errorf("error %v after %d runs", err, runs)
			}
			if diff := cmp.Diff(c.want, names(t, e)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABreakInAReadIsRetried(t *testing.T) {
	t.Parallel()
	p := through(t, database(t))
	e := engine(t, postgres.Options{URL: p.url})
	write(t, e, insert("a"))
	p.set(at("SELECT name FROM facts ORDER BY id", cut))
	if diff := cmp.Diff([]string{"a"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
}

// breakableCalls are calls for which the connection may break at any message. Each adds 1
// to a fact's counter, and creates the fact if it is missing.
var breakableCalls = []struct {
	name string
	call func(tx storage.Tx, fact string) error
}{
	{"now", func(tx storage.Tx, fact string) error {
		_, err := tx.Exec(addOne, fact)
		return err
	}},
	{"later", func(tx storage.Tx, fact string) error { return tx.Later(errRefused, nil, addOne, fact) }},
	{"read first", func(tx storage.Tx, fact string) error {
		if _, err := tx.Row(nil, "SELECT n FROM facts WHERE name = $1 FOR UPDATE", fact); err != nil {
			return err
		}
		return tx.Later(nil, nil, addOne, fact)
	}},
}

const addOne = "INSERT INTO facts (name, n) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = facts.n + 1"

// TestABreakLosesAndRepeatsNothing breaks the connection at each of its messages in turn.
// Every call has a fact of its own, because the server may commit an unclear call long
// after its caller has the answer.
func TestABreakLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	url := database(t)
	p := through(t, url)
	e, direct := engine(t, postgres.Options{URL: p.url, Connections: 1}), engine(t, postgres.Options{URL: url, Connections: 1})
	cuts := 0
	for n := 1; ; n++ {
		seen := 0
		p.set(func(message) verdict {
			if seen++; seen == n {
				return cut
			}
			return pass
		})
		for _, c := range breakableCalls {
			fact := fmt.Sprintf("%s, cut at message %d", c.name, n)
			err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error { return c.call(tx, fact) })
			switch done := count(t, direct, fact); {
			case err == nil && done == 1, errors.Is(err, storage.ErrUnclear) && done <= 1:
			default:
				t.Fatalf("%s: error %v, counter %d", fact, err, done)
			}
		}
		p.set(nil) // waits until the proxy has judged the current message
		if seen < n {
			break
		}
		cuts++
	}
	if cuts < 20 {
		t.Errorf("only %d messages could be cut", cuts)
	}
	if err := direct.Read(t.Context(), func(tx storage.Tx) error {
		return tx.Rows(func(scan func(...any) error) error {
			var fact string
			err := scan(&fact)
			t.Errorf("%s: ran twice", fact)
			return err
		}, "SELECT name FROM facts WHERE n > 1")
	}); err != nil {
		t.Error(err)
	}
}

// count returns the counter of a fact.
func count(t *testing.T, e storage.Engine, name string) (n int64) {
	t.Helper()
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		_, err := tx.Row([]any{&n}, "SELECT n FROM facts WHERE name = $1", name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTerminatedBackendsLoseNoWrite(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 25
	url := database(t)
	e := engine(t, postgres.Options{URL: url})
	var acknowledged, unclear [writers]int64
	done := make(chan struct{}, writers*each)
	var callers sync.WaitGroup
	for w := range writers {
		name := string(rune('a' + w))
		write(t, e, insert(name))
		callers.Go(func() {
			for range each {
				err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
					_, err := tx.Exec("UPDATE facts SET n = n + 1 WHERE name = $1", name)
					return err
				})
				switch {
				case err == nil:
					acknowledged[w]++
				case errors.Is(err, storage.ErrUnclear):
					unclear[w]++
				default:
					t.Errorf("error %v", err)
				}
				done <- struct{}{}
			}
		})
	}
	killer := connect(t, url)
	for i := range writers * each {
		if <-done; i%5 == 0 {
			if _, err := killer.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY random() LIMIT 2`); err != nil {
				t.Error(err)
			}
		}
	}
	callers.Wait()
	for w := range writers {
		if n := count(t, e, string(rune('a'+w))); n < acknowledged[w] || n > acknowledged[w]+unclear[w] {
			t.Errorf("counter %d; %d calls acknowledged, %d unclear", n, acknowledged[w], unclear[w])
		}
	}
}

func TestTerminatedIdleConnectionsAreNoError(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url})
	connects(t, e, 6)
	run(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	write(t, e, insert("a"))
	if diff := cmp.Diff([]string{"a"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
}

// connects opens several connections of an engine.
func connects(t *testing.T, e *postgres.Engine, n int) {
	t.Helper()
	var together, gone sync.WaitGroup
	together.Add(n)
	for range n {
		gone.Go(func() {
			if err := e.Read(t.Context(), func(tx storage.Tx) error {
				_, err := tx.Row(nil, "SELECT WHERE true")
				together.Done()
				together.Wait()
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	gone.Wait()
}

// lease is the time in which a call must succeed after the network has dropped all
// connections.
const lease = 8 * time.Second

// TestSilentlyDroppedConnectionsAreReplaced proves that at most one try of a call meets a
// dropped connection, and that this try ends long before a lease.
func TestSilentlyDroppedConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]func(storage.Tx) error{"before COMMIT": insert("a"), "at COMMIT": later("a")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := through(t, database(t))
			e := engine(t, postgres.Options{URL: p.url})
			connects(t, e, 6)
			p.freeze()
			ctx, cancel := context.WithTimeout(t.Context(), lease)
			defer cancel()
			err := e.Write(ctx, storage.WriteOptions{}, fn)
			if errors.Is(err, storage.ErrUnclear) {
				err = e.Write(ctx, storage.WriteOptions{}, fn)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestABrokenConnectionLeavesItsPlace proves that a reading of the clock which meets a dropped
// connection makes the pool replace all connections, and that the server's silence delays no
// call.
func TestABrokenConnectionLeavesItsPlace(t *testing.T) {
	t.Parallel()
	p := through(t, database(t))
	e := engine(t, postgres.Options{URL: p.url, Connections: 3})
	connects(t, e, 3)
	p.freeze()
	ctx, cancel := context.WithTimeout(t.Context(), lease)
	defer cancel()
	reading, stop := context.WithTimeout(ctx, lease/50)
	defer stop()
	if err := e.AskTheTime(reading); err == nil {
		t.Fatal("a dropped connection answered")
	}
	for e.Open() > 0 && ctx.Err() == nil {
		yield()
	}
	if err := e.Write(ctx, storage.WriteOptions{}, later("a")); err != nil {
		t.Error(err)
	}
}

func TestAShortOutageIsRetried(t *testing.T) {
	t.Parallel()
	p := through(t, database(t))
	e := engine(t, postgres.Options{URL: p.url})
	p.goAway(3)
	write(t, e, insert("a"))
	p.goAway(3)
	if diff := cmp.Diff([]string{"a"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
	p.wantRefused(t, 6)
}

func TestALongOutageIsUnavailable(t *testing.T) {
	t.Parallel()
	p := through(t, database(t))
	e := engine(t, postgres.Options{URL: p.url})
	p.goAway(1 << 16)
	for what, call := range map[string]func(context.Context, func(storage.Tx) error) error{
		"write": func(ctx context.Context, fn func(storage.Tx) error) error {
			return e.Write(ctx, storage.WriteOptions{}, fn)
		},
		"read": e.Read,
	} {
		err := call(t.Context(), insert("a"))
		if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnclear) {
			t.Errorf("%s: error %v", what, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := call(ctx, insert("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s with a short deadline: error %v", what, err)
		}
	}
	told := make(chan error)
	const calls = 500
	for range calls {
		go func() { told <- e.Write(t.Context(), storage.WriteOptions{}, insert("a")) }()
	}
	for e.Waiting() < calls/2 {
		yield()
	}
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	for range calls {
		if err := <-told; !storage.Unavailable(err) {
			t.Errorf("during Close: error %v", err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestASilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	for query, unclear := range map[string]bool{"UPDATE facts SET n = 1": false, "COMMIT": true} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			p := through(t, database(t))
			e := engine(t, postgres.Options{URL: p.url, Connections: 2}) // the silent connection stays in use until it is closed
			backend(t, e)
			e.AnswerWithin(time.Second)
			silent := false
			p.set(func(m message) verdict {
				if silent = silent || m.query == query; silent {
					return drop
				}
				return pass
			})
			err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
				_, err := tx.Exec("UPDATE facts SET n = 1")
				p.turnAway(1 << 16)
				return err
			})
			if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnclear) != unclear {
				t.Errorf("error %v", err)
			}
			p.cut() // the pool closes the silent connection in the background
		})
	}
}

func TestCloseLeavesNoConnection(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url, Connections: 3})
	var callers sync.WaitGroup
	for i := range 60 {
		runs := 0
		callers.Go(func() {
			_ = e.Write(t.Context(), storage.WriteOptions{}, []func(storage.Tx) error{
				insert("a"),
				func(tx storage.Tx) error {
					if runs++; runs > 1 {
						return nil
					}
					_, err := tx.Exec("SELECT pg_terminate_backend(pg_backend_pid())")
					return err
				},
				func(tx storage.Tx) error { return errors.Join(later("b")(tx), errRefused) },
			}[i%3])
		})
	}
	callers.Wait()
	watcher := connect(t, url)
	left := func() (n int) {
		if err := watcher.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for left() > 3 {
		yield()
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for left() > 0 {
		yield()
	}
}

func TestNoErrorShowsThePassword(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	for _, url := range []string{
		"postgres://root:" + password + "@127.0.0.1:1/test?connect_timeout=1",
		"postgres://root:" + password + "@nowhere.invalid/test?connect_timeout=1",
		"postgres://root:" + password + "@127.0.0.1:1/test?sslmode=nonsense",
		"postgres://root:" + password + "@127.0.0.1:port/test",
		"postgres://root:12/" + password + "@127.0.0.1:1/test?connect_timeout=1",
		"postgres://root:a@" + password + "@127.0.0.1:1/test?connect_timeout=1",
		"postgres://root:%zz" + password + "@127.0.0.1:1/test",
		"host=127.0.0.1 port=1 connect_timeout=1 password=" + password,
	} {
		for _, o := range []postgres.Options{{URL: url}, {URL: "postgres://127.0.0.1:1/test?connect_timeout=1", ListenURL: url}} {
			e, err := postgres.Open(t.Context(), o)
			if err == nil {
				t.Fatal("opened", e.Close())
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("error %q", strings.ReplaceAll(err.Error(), password, "the password"))
			}
		}
	}
}

// TestABreakDuringOpenIsRetried in both of its steps.
func TestABreakDuringOpenIsRetried(t *testing.T) {
	for _, query := range []string{"SELECT pg_advisory_xact_lock($1)", "SELECT clock_timestamp()"} {
		p := through(t, database(t))
		broke := false
		p.set(func(m message) verdict {
			if broke || m.query != query {
				return pass
			}
			broke = true
			return cut
		})
		engine(t, postgres.Options{URL: p.url})
		if !broke {
			t.Errorf("%s was not sent", query)
		}
	}
}
