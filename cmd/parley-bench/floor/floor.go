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
	"os"
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
	relay        *relay // streams a model's answer; nil for the message's own text
}

// options are the flags of the subcommand floor.
type options struct {
	listen, api, store, postgres string
	model, agent                 string
	connections                  int
}

func (f *options) define(flags *rig.FlagSet) {
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8585", "address of the hook")
	flags.StringVar(&f.api, "api", "", "base URL of the Web API")
	flags.StringVar(&f.store, "store", "floor.db", "the SQLite file")
	flags.StringVar(&f.postgres, "postgres", "", "URL of a PostgreSQL database with the floor's tables, instead of the file")
	flags.StringVar(&f.model, "model", "", "URL of a model, whose answers the floor streams instead of the message's text")
	flags.StringVar(&f.agent, "agent", "openai", "the kind of agent that the model is")
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
		Transport: &http.Transport{MaxIdleConnsPerHost: workers},
	}}
	if given.model != "" {
		f.relay = &relay{given.model, given.agent}
	}
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
	Team    string `json:"team_id"`
	Event   struct {
		User     string `json:"user"`
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
		f.posts.Go(func() {
			if err := f.answer(ctx, id, event); err != nil { // the ledger finds the missing reply
				fmt.Fprintf(os.Stderr, "answer %s: %v\n", event.EventID, err)
			}
		})
	}
}

// answer commits the message, posts the reply, and commits that. It gives up at the
// first error.
func (f *program) answer(ctx context.Context, id int64, event posted) error {
	f.slots <- struct{}{}
	defer func() { <-f.slots }()
	e := &event.Event
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
	post := f.post
	if f.relay != nil {
		post = f.stream
	}
	ts, err := post(ctx, event)
	if err != nil {
		return err
	}
	sent.args = []any{ts, id}
	return f.store.commit(ctx, sent)
}

// post posts the message's text.
func (f *program) post(ctx context.Context, event posted) (ts string, err error) {
	return f.call(ctx, "chat.postMessage", url.Values{"channel": {event.Event.Channel}, "thread_ts": {event.Event.ThreadTS}, "text": {event.Event.Text}})
}

// call calls a method of the Web API and returns the ts of its message.
func (f *program) call(ctx context.Context, method string, form url.Values) (ts string, err error) {
	form.Set("token", slacktest.Token)
	if form.Get("thread_ts") == "" {
		form.Del("thread_ts")
	}
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.api+method, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := f.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer struct {
		TS, Error string
		OK        bool
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", err
	}
	if !answer.OK {
		return "", fmt.Errorf("%s: %s", method, answer.Error)
	}
	return answer.TS, nil
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
