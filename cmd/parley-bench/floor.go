package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// floorSchema is the floor's migrations.
//
//go:embed floor/*.sql
var floorSchema embed.FS

// floorWorkers is how many posts are under way at once, as many as the daemon's.
const floorWorkers = 128

// floor does the least that the daemon's promise allows: it verifies a signature,
// commits the envelope before it acknowledges, commits the message, posts the
// reply, and commits that it was sent. It keeps no order, knows no policy, asks
// no agent, and recovers nothing after a crash.
// Its store is the journal's engine with a schema of its own: a committer written
// for this alone was no faster.
type floor struct {
	engine *sqlite.Engine
	api    string
	client *http.Client
	slots  chan struct{}
	posts  sync.WaitGroup
}

// runFloor serves until ctx ends.
func runFloor(ctx context.Context, args []string, _ io.Writer) (err error) {
	var listen, store string
	f := &floor{slots: make(chan struct{}, floorWorkers), client: &http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: floorWorkers},
	}}
	if err := parseFlags("floor", args, func(flags *flag.FlagSet) {
		flags.StringVar(&listen, "listen", "127.0.0.1:8585", "where its hook listens")
		flags.StringVar(&f.api, "api", "", "the address of the Web API")
		flags.StringVar(&store, "store", "floor.db", "its SQLite file")
	}); err != nil {
		return err
	}
	schema, err := fs.Sub(floorSchema, "floor")
	if err != nil {
		return err
	}
	if f.engine, err = sqlite.Open(ctx, store, sqlite.WithMigrations(schema)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.engine.Close()) }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST "+hookPath, f.hook)
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	down := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
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

// floorEvent is what the floor reads of an event.
type floorEvent struct {
	EventID string `json:"event_id"`
	Event   struct {
		Channel  string `json:"channel"`
		TS       string `json:"ts"`
		ThreadTS string `json:"thread_ts"`
		Text     string `json:"text"`
	} `json:"event"`
}

func (f *floor) hook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	verifier, err := slack.NewSecretsVerifier(r.Header, signingSecret)
	if err == nil {
		_, _ = verifier.Write(body) // a hash takes everything
		err = verifier.Ensure()
	}
	if err != nil {
		http.Error(w, "signature", http.StatusUnauthorized)
		return
	}
	var event floorEvent
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "JSON", http.StatusBadRequest)
		return
	}
	id, isNew, err := f.accept(r.Context(), event.EventID, body)
	if err != nil {
		http.Error(w, "store", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
	if isNew {
		ctx := context.WithoutCancel(r.Context())
		f.posts.Go(func() { f.answer(ctx, id, event) })
	}
}

// accept makes the envelope durable: the first commit.
func (f *floor) accept(ctx context.Context, key string, body []byte) (id int64, isNew bool, err error) {
	err = f.engine.Write(ctx, func(tx journal.Tx) error {
		isNew, err = tx.Row([]any{&id}, `INSERT INTO envelopes (key, body) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id`, key, body)
		return err
	})
	return id, isNew, err
}

// answer makes the message durable, posts the reply, and makes that durable. What
// fails is never answered, which the measurement then finds.
func (f *floor) answer(ctx context.Context, id int64, event floorEvent) {
	f.slots <- struct{}{}
	defer func() { <-f.slots }()
	e := event.Event
	root := e.ThreadTS
	if root == "" && !strings.HasPrefix(e.Channel, "D") {
		root = e.TS
	}
	err := f.engine.Write(ctx, func(tx journal.Tx) error {
		if _, err := tx.Exec(`INSERT INTO messages (id, channel, thread, content) VALUES (?, ?, ?, ?)`, id, e.Channel, root, e.Text); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE envelopes SET done = 1 WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return
	}
	ts, err := f.post(ctx, e.Channel, root, e.Text)
	if err != nil {
		return
	}
	_ = f.engine.Write(ctx, func(tx journal.Tx) error {
		_, err := tx.Exec(`UPDATE messages SET sent = ? WHERE id = ?`, ts, id)
		return err
	})
}

// post calls chat.postMessage once.
func (f *floor) post(ctx context.Context, channel, root, text string) (ts string, err error) {
	form := url.Values{"token": {slacktest.Token}, "channel": {channel}, "text": {text}}
	if root != "" {
		form.Set("thread_ts", root)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.api+"chat.postMessage", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := f.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer struct{ TS string }
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.TS, err
}
