package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/ingest/journal/postgres"
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
	took := time.Since(asked)
	before := theirs(t, c)
	now := e.Now()
	after := theirs(t, c)
	// The operating system may step a clock; slack allows for that.
	if slack := took + 100*time.Millisecond; now.Before(before.Add(-slack)) || now.After(after.Add(slack)) {
		t.Errorf("the clock shows %v; the database showed %v before and %v after", now, before, after)
	}
	if first, second := e.Now(), e.Now(); second.Before(first) {
		t.Errorf("%v is before %v", second, first)
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
