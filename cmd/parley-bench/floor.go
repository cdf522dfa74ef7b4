package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/postgres"
)

// floorWorkers is how many posts are under way at once, as many as the daemon's.
const floorWorkers = 128

// floorTimeout bounds a post, as the daemon's does.
const floorTimeout = 10 * time.Second

// floor does the least that the daemon's promise allows: it verifies a signature,
// commits the envelope before it acknowledges, commits the message, posts the
// reply, and commits that it was sent; on PostgreSQL also, before the post, that
// it is being sent. It keeps no order, knows no policy, asks no agent, and
// recovers nothing after a crash.
type floor struct {
	store  floorStore
	api    string
	client *http.Client
	slots  chan struct{}
	posts  sync.WaitGroup
}

// floorFlags are floor's own.
type floorFlags struct {
	listen, api, store, postgres string
	connections                  int
}

func (f *floorFlags) define(flags *flag.FlagSet) {
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8585", "where its hook listens")
	flags.StringVar(&f.api, "api", "", "the address of the Web API")
	flags.StringVar(&f.store, "store", "floor.db", "its SQLite file")
	flags.StringVar(&f.postgres, "postgres", "", "URL of a PostgreSQL database with the floor's tables, instead of the file")
	flags.IntVar(&f.connections, "connections", postgres.DefaultConnections, "to PostgreSQL, as many as one daemon has")
}

// open opens the store; close it when nothing uses it any more.
func (f *floorFlags) open(ctx context.Context) (store floorStore, close func() error, err error) {
	if f.postgres != "" {
		s, err := openFloorPostgres(ctx, f.postgres, f.connections)
		return s, func() error { s.Close(); return nil }, err
	}
	s, err := openFloorSQLite(ctx, f.store)
	return s, s.Close, err
}

// runFloor serves until ctx ends.
func runFloor(ctx context.Context, args []string, _ io.Writer) (err error) {
	var flags floorFlags
	if err := parseFlags("floor", args, flags.define); err != nil {
		return err
	}
	store, closeStore, err := flags.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	f := &floor{store: store, api: flags.api, slots: make(chan struct{}, floorWorkers), client: &http.Client{
		Timeout: floorTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: floorWorkers},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST "+hookPath, f.hook)
	server := &http.Server{Addr: flags.listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
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
	id, isNew, err := f.store.accept(r.Context(), event.EventID, body)
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
	if f.store.record(ctx, id, e.Channel, root, e.Text) != nil {
		return
	}
	if f.store.sending(ctx, id, time.Now().Add(floorTimeout)) != nil {
		return
	}
	ts, err := f.post(ctx, e.Channel, root, e.Text)
	if err != nil {
		return
	}
	_ = f.store.sent(ctx, id, ts)
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

// newFloors are processes of the floor.
func (b *bench) newFloors(ctx context.Context, name string, f nodesFlags, s settings) (*nodes, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the floor: %w", err)
	}
	n, err := b.newNodes(ctx, name, f, func(name string, d *database) (*child, error) {
		dir := filepath.Join(b.work, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the floor's directory: %w", err)
		}
		c, err := newChild(self, dir)
		if err != nil {
			return nil, err
		}
		c.args = []string{"floor", "-listen", c.address, "-api", s.api.ClientURL(name), "-store", c.storePath()}
		if d != nil {
			c.args = append(c.args, "-postgres", d.url)
		}
		return c, nil
	})
	if err != nil || n.database == nil {
		return n, err
	}
	return n, n.database.apply(ctx, floorTables)
}
