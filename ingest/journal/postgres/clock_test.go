package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/storage"
)

func TestNowIsTheDatabasesTime(t *testing.T) {
	t.Parallel()
	url := database(t)
	e, c := engine(t, postgres.Options{URL: url}), connect(t, url)
	const wrong = time.Hour
	e.Backdate(wrong)
	if behind := theirs(t, c).Sub(e.Now()); behind < wrong/2 {
		t.Errorf("a clock set back by %v is %v behind", wrong, behind)
	}
	asked := time.Now()
	if err := e.AskTheTime(t.Context()); err != nil {
		t.Fatal(err)
	}
	sameTime(t, e, c, time.Since(asked))
	if first, second := e.Now(), e.Now(); second.Before(first) {
		t.Errorf("%v is before %v", second, first)
	}
}

// sameTime compares the engine's clock with the database's. The last reading took at most
// the given time.
func sameTime(t *testing.T, e *postgres.Engine, c *pgx.Conn, took time.Duration) {
	t.Helper()
	before := theirs(t, c)
	now := e.Now()
	after := theirs(t, c)
	// The operating system may step a clock; slack allows for that.
	if slack := took + 100*time.Millisecond; now.Before(before.Add(-slack)) || now.After(after.Add(slack)) {
		t.Errorf("the clock shows %v; the database showed %v before and %v after", now, before, after)
	}
}

// TestNowAfterASuspension proves that the clock is read again: the monotonic clock does not
// count the time of the suspension.
func TestNowAfterASuspension(t *testing.T) {
	t.Parallel()
	url := database(t)
	e, c := engine(t, postgres.Options{URL: url}), connect(t, url)
	e.Suspend(time.Hour)
	asked := time.Now()
	e.Now()
	sameTime(t, e, c, time.Since(asked))
}

// TestAReadingBeginsWithItsConnection proves that the wait for a connection of the pool does
// not make a reading inexact.
func TestAReadingBeginsWithItsConnection(t *testing.T) {
	t.Parallel()
	url := database(t)
	e, c := engine(t, postgres.Options{URL: url, Connections: 1}), connect(t, url)
	connected, release, written, read := make(chan struct{}), make(chan struct{}), make(chan error), make(chan error)
	go func() {
		written <- e.Write(t.Context(), storage.WriteOptions{}, func(storage.Tx) error {
			close(connected)
			<-release
			return nil
		})
	}()
	<-connected
	go func() { read <- e.AskTheTime(t.Context()) }()
	for range 100 { // the reading waits for longer than its query takes
		theirs(t, c)
	}
	released := time.Now()
	close(release)
	if err := errors.Join(<-written, <-read); err != nil {
		t.Fatal(err)
	}
	if at := e.ReadAt(); at.Before(released) {
		t.Errorf("the reading began %v before its connection was free", released.Sub(at))
	}
}

// theirs returns the database's time.
func theirs(t *testing.T, c *pgx.Conn) (at time.Time) {
	t.Helper()
	if err := c.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}
