package journaltest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/ingest/journal/listing"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// listings calls everything that operators look at, and returns the statements.
func listings(t *testing.T) (*conversation, []string) {
	t.Helper()
	c := newConversation(t)
	c.exchange("C1/1")
	run, _ := c.ask("C1/2")
	c.recorder.taken()
	ctx := c.Context()
	found := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				t.Error(err)
			}
		}
	}
	_, err := c.Listing.Counts(ctx, []string{"acme"})
	_, figures := c.Listing.Figures(ctx)
	_, _, threads := c.Listing.AllThreads(ctx, listing.ThreadFilter{Workspaces: []string{"acme"}, Limit: 50})
	for _, state := range listing.ThreadStates() {
		_, _, err := c.Listing.AllThreads(ctx, listing.ThreadFilter{Workspaces: []string{"acme"}, Channel: "C1", Agent: "helper", State: state, Since: time.Now(), Until: time.Now(), Limit: 50})
		found(err)
	}
	_, hour := c.Listing.LastHour(ctx)
	_, some := c.Listing.ThreadsOf(ctx, []string{"u"}, listing.ThreadFilter{Workspaces: []string{"acme"}})
	found(hour, some)
	_, thread := c.Listing.ThreadOf(ctx, "slack:acme:C1:1")
	found(err, figures, threads, thread)
	for _, f := range []listing.RunFilter{{Limit: 50}, {Limit: 50, State: "failed"}, {Limit: 50, Since: time.Now().Add(-time.Hour)}, {Limit: 50, State: "done", Workspace: "acme", Agent: "helper", Thread: "slack:acme:C1:1", Channel: "C1", Text: "gone", Until: time.Now()}} {
		_, _, err := c.Listing.ListRuns(ctx, f)
		found(err)
	}
	for _, states := range append([][]string{nil}, func() (each [][]string) {
		for _, s := range listing.DeliveryStates() {
			each = append(each, []string{s})
		}
		return each
	}()...) {
		_, err := c.Listing.Deliveries(ctx, states, 0, 50)
		found(err)
	}
	_, delivery := c.Listing.Delivery(ctx, 1)
	_, letters := c.Listing.DeadLetters(ctx, 0, 50)
	_, letter := c.Listing.DeadLetter(ctx, 1)
	_, _, questions := c.Listing.Questions(ctx, "", 50)
	_, question := c.Listing.FindQuestion(ctx, run.ID)
	_, of := c.Listing.LifeOf(ctx, "C1/1", []string{"acme"})
	_, posted := c.Listing.LifeOf(ctx, "C1/1/reply", []string{"acme"})
	_, by := c.Listing.LifeByID(ctx, run.ID)
	_, one := c.Listing.FindRun(ctx, run.ID)
	_, first := c.Listing.FirstOf(ctx, run.ID)
	_, unknown := c.Listing.FirstOf(ctx, "unknown")
	_, _, kept := c.Listing.KeptInput(ctx, run.ID)
	_, audit := c.Audit.Actions(ctx, 0, 50)
	_, start := c.Listing.FirstStart(ctx)
	window := func(*runs.Run) runs.Window { return runs.Window{Turns: 20, Bytes: 10_000, Context: 20} }
	_, past := c.Runs.PastInput(ctx, run.ThreadID, run.ID, window)
	found(delivery, letters, letter, questions, question, of, posted, by, one, first, unknown, kept, audit, start, past)
	statements, _ := c.recorder.taken()
	c.recorder.statements = statements
	return c, statements
}

// growing are the tables that grow with the store, and the names that the statements of listings give them.
var growing = []string{
	"threads", "t", "envelopes", "e", "messages", "m", "f", "turn", "deliveries", "d", "o", "runs", "r", "questions", "q", "run_attempts", "run_inputs", "run_posts", "run_steps",
	"operator_log", "attachments", "channels", "c", "participants",
}

// TestNoListingScansATable proves that the cost of what operators look at does not grow with the store.
func TestNoListingScansATable(t *testing.T) {
	t.Parallel()
	c, _ := listings(t)
	for statement, plan := range c.plans() {
		if strings.HasSuffix(statement, "FROM messages ORDER BY row LIMIT 1") {
			continue // it reads one row
		}
		for line := range strings.Lines(plan) {
			for _, table := range growing {
				if strings.TrimSpace(line) == "SCAN "+table && !strings.Contains(plan, "CO-ROUTINE "+table) {
					t.Errorf("%s\nreads all of %s:\n%s", statement, table, plan)
				}
			}
		}
	}
}

// TestNoListingScansATableInPostgreSQL is the same for PostgreSQL, which has an index for each table here.
func TestNoListingScansATableInPostgreSQL(t *testing.T) {
	t.Parallel()
	url := postgrestest.Schema(t, postgrestest.URL(t))
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, statements := listings(t)
	for _, statement := range statements {
		execute := "one"
		most := 0
		for strings.Contains(statement, fmt.Sprint("$", most+1)) {
			most++
		}
		if most > 0 {
			execute += "(" + strings.TrimSuffix(strings.Repeat("NULL,", most), ",") + ")"
		}
		results, err := conn.PgConn().Exec(t.Context(), "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE one AS "+statement+
			"; EXPLAIN EXECUTE "+execute+"; DEALLOCATE one").ReadAll()
		if err != nil {
			t.Errorf("%s\n%v", statement, err)
			continue
		}
		for _, row := range results[len(results)-2].Rows {
			line := string(row[0])
			for _, table := range growing {
				if strings.Contains(line, "Seq Scan on "+table+" ") {
					t.Errorf("%s\nreads all of a table: %s", statement, line)
				}
			}
		}
	}
}
