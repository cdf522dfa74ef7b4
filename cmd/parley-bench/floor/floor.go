// Package floor is the yardstick of the load: the program that does the least work for the daemon's
// promise.
package floor

import (
	"context"
	_ "embed" // reads the tables
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
	"parley/cmd/internal/command"
	"parley/cmd/parley-bench/internal/rig"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

const (
	// workers is the number of concurrent posts, the same as the daemon's.
	workers = 128
	// postTimeout bounds a post, like the daemon's timeout.
	postTimeout = 10 * time.Second
)

// program does the least work that the daemon's promise allows. It verifies the signature,
// commits the envelope before it acknowledges, commits the message, posts the reply, and
// commits that the reply was sent. On PostgreSQL it also commits, before the post, that
// the reply is being sent. It keeps no order, has no policy and no agent, and recovers
// nothing after a crash.
type program struct {
	store  store
	api    string
	client *http.Client
	slots  chan struct{}
	posts  sync.WaitGroup
	// marksSending says that the floor commits, before a post, that it is being sent.
	marksSending bool
}

// options are the flags of the subcommand floor.
type options struct {
	listen, api, store, postgres string
	connections                  int
}

func (f *options) define(flags *rig.FlagSet) {
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8585", "address of the hook")
	flags.StringVar(&f.api, "api", "", "base URL of the Web API")
	flags.StringVar(&f.store, "store", "floor.db", "the SQLite file")
	flags.StringVar(&f.postgres, "postgres", "", "URL of a PostgreSQL database with the floor's tables, instead of the file")
	flags.Number(&f.connections, "connections", postgres.DefaultConnections, 1, "connections to PostgreSQL, the same number as a daemon's")
}

// Run serves until ctx ends. Then it finishes the replies that it has begun.
func Run(ctx context.Context, args []string) error {
	var given options
	if err := command.ParseFlags("floor", args, func(f *flag.FlagSet) { given.define(&rig.FlagSet{FlagSet: f}) }); err != nil {
		return err
	}
	store, closeStore, err := openStorage(ctx, given)
	if err != nil {
		return err
	}
	defer closeStore()
	f := &program{store: store, marksSending: given.postgres != "", api: given.api, slots: make(chan struct{}, workers), client: &http.Client{
		Timeout: postTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: workers},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST "+rig.HookPath, f.hook)
	server := &http.Server{Addr: given.listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	down := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rig.StopWithin)
		defer cancel()
		down <- server.Shutdown(ctx)
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the floor: %w", err)
	}
	err = <-down
	f.posts.Wait()
	return err
}

// posted is the part of an event that the floor reads.
type posted struct {
	EventID string `json:"event_id"`
	Event   struct {
		Channel  string `json:"channel"`
		TS       string `json:"ts"`
		ThreadTS string `json:"thread_ts"`
		Text     string `json:"text"`
	} `json:"event"`
}

func (f *program) hook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	verifier, err := slack.NewSecretsVerifier(r.Header, rig.SigningSecret)
	if err == nil {
		_, _ = verifier.Write(body) // a write to a hash cannot fail
		err = verifier.Ensure()
	}
	if err != nil {
		http.Error(w, "signature", http.StatusUnauthorized)
		return
	}
	var event posted
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "JSON", http.StatusBadRequest)
		return
	}
	id, isNew, err := f.store.accept(r.Context(), event.EventID, body)
	if err != nil {
		http.Error(w, "store", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
	if isNew {
		ctx := context.WithoutCancel(r.Context())
		f.posts.Go(func() { _ = f.answer(ctx, id, event) }) // the ledger finds a missing reply
	}
}

// answer commits the message, posts the reply, and commits that. It gives up at the
// first error.
func (f *program) answer(ctx context.Context, id int64, event posted) error {
	f.slots <- struct{}{}
	defer func() { <-f.slots }()
	e := event.Event
	if e.ThreadTS == "" && !strings.HasPrefix(e.Channel, "D") {
		e.ThreadTS = e.TS
	}
	err := f.store.commit(ctx, statement{`INSERT INTO messages (id, channel, thread, content) VALUES ($1, $2, $3, $4)`, []any{id, e.Channel, e.ThreadTS, e.Text}},
		statement{`UPDATE envelopes SET done = true WHERE id = $1`, []any{id}})
	if err != nil {
		return err
	}
	// On SQLite the floor makes three commits, since the daemon marks a reply there in the
	// commit that stores it.
	sent := statement{`UPDATE messages SET sent = $1 WHERE id = $2`, nil}
	if f.marksSending {
		sent.sql = `UPDATE deliveries SET state = 'sent', sent = $1 WHERE message = $2`
		sending := statement{`INSERT INTO deliveries (message, state, send_by) VALUES ($1, 'sending', $2)`, []any{id, time.Now().Add(postTimeout)}}
		if err := f.store.commit(ctx, sending); err != nil {
			return err
		}
	}
	form := url.Values{"token": {slacktest.Token}, "channel": {e.Channel}, "text": {e.Text}}
	if e.ThreadTS != "" {
		form.Set("thread_ts", e.ThreadTS)
	}
	response, err := f.client.PostForm(f.api+"chat.postMessage", form)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct{ TS string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	sent.args = []any{answer.TS, id}
	return f.store.commit(ctx, sent)
}

// store makes the commits of a message. Each commit is durable when its call returns.
type store interface {
	// accept stores an envelope once. isNew is false if the envelope was stored before.
	accept(ctx context.Context, key string, body []byte) (id int64, isNew bool, err error)
	// commit executes statements in one transaction.
	commit(ctx context.Context, statements ...statement) error
}

type statement struct {
	sql  string
	args []any
}

// embeddedTables makes the tables of onSQLite.
//
//go:embed sqlite/tables.sql
var embeddedTables string

// Tables makes the tables of onPostgres.
//
//go:embed postgres/tables.sql
var Tables string

// openStorage also returns the function that closes the store.
func openStorage(ctx context.Context, f options) (store, func(), error) {
	if f.postgres == "" {
		engine, err := sqlite.Open(ctx, f.store, sqlite.Options{Steps: []schema.Step{{Name: "0001_floor.sql", Text: embeddedTables}}})
		return onSQLite{engine}, func() { _ = engine.Close() }, err // all commits are durable before
	}
	config, err := pgxpool.ParseConfig(f.postgres)
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = int32(f.connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return onPostgres{pool}, pool.Close, err
}

// onSQLite is the journal's engine with a schema of its own. A committer that was
// written only for the floor was no faster.
type onSQLite struct{ *sqlite.Engine }

func (s onSQLite) accept(ctx context.Context, key string, body []byte) (id int64, isNew bool, err error) {
	err = s.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		isNew, err = tx.Row([]any{&id}, `INSERT INTO envelopes (key, body) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`, key, body)
		return err
	})
	return id, isNew, err
}

func (s onSQLite) commit(ctx context.Context, statements ...statement) error {
	return s.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		for _, one := range statements {
			if _, err := tx.Exec(one.sql, one.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// onPostgres is a plain program's use of PostgreSQL: a pool, prepared statements
// (pgx prepares them by itself), and one round trip for each transaction.
type onPostgres struct{ *pgxpool.Pool }

func (s onPostgres) accept(ctx context.Context, key string, body []byte) (id int64, isNew bool, err error) {
	err = s.QueryRow(ctx, `INSERT INTO envelopes (key, body) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`, key, body).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return id, err == nil, err
}

// commit sends all statements in one round trip, which makes them one transaction.
func (s onPostgres) commit(ctx context.Context, statements ...statement) error {
	batch := &pgx.Batch{}
	for _, one := range statements {
		batch.Queue(one.sql, one.args...)
	}
	return s.SendBatch(ctx, batch).Close()
}
