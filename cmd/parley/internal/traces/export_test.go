package traces_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/propagation"
	api "go.opentelemetry.io/otel/trace"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/cmd/parley/internal/traces"
	"parley/cmd/parley/internal/traces/tracestest"
	"parley/config"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/trace"
)

const key = "canary-key-77c1"

// settings returns the settings of a collector at an address.
func settings(url string) config.Traces {
	return config.Traces{
		Tracing: config.Tracing{OTLP: url, Sample: 1, Headers: map[string]secret.Value{"x-key": secret.New(key)}}, URL: url + "/v1/traces",
	}
}

// store has the first messages of runs, and the ended ones.
type store struct {
	first map[string]listing.Traced
	ended map[string]listing.Run
	asked atomic.Int64
}

func (s *store) FirstOf(_ context.Context, run string) (listing.Traced, error) {
	s.asked.Add(1)
	if m, ok := s.first[run]; ok {
		return m, nil
	}
	return listing.Traced{}, storage.ErrNotFound
}

func (s *store) FindRun(_ context.Context, id string) (listing.Run, error) {
	if run, ok := s.ended[id]; ok {
		return run, nil
	}
	return listing.Run{}, storage.ErrNotFound
}

func (*store) TasksOf(context.Context, string) ([]listing.Traced, error) { return nil, nil }

func (*store) WorkstreamOf(context.Context, event.ThreadKey) (string, listing.Traced, error) {
	return "", listing.Traced{}, storage.ErrNotFound
}

// open returns traces of a collector, and the log.
func open(t testing.TB, c config.Traces, s *store) (*traces.Traces, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	made, err := traces.Open(context.Background(), traces.Options{
		Traces: c, Version: "1", Node: "n", Store: s, Agent: func(string) traces.Agent { return traces.Agent{Kind: "openai", Model: "m"} },
		Log: slog.New(slog.NewTextHandler(log, nil)), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return made, log
}

// newRun returns a run of one message that has just begun.
func newRun() *runs.Run {
	run := &runs.Run{ID: uuid.NewString(), Agent: "helper", Place: threads.Place{Workspace: "acme", ThreadKey: "slack:acme:C1"}, BegunAt: time.Now()}
	run.SetMessages([]messages.Message{{UUID: uuid.NewString(), Content: "hello"}})
	run.Fresh = true
	return run
}

// TestAsk checks that a collector is asked as spans are sent, that its refusal is told without the values of headers, and that no
// redirect gets them.
func TestAsk(t *testing.T) {
	c := tracestest.New(t)
	if err := traces.Ask(t.Context(), settings(c.URL)); err != nil {
		t.Error(err)
	}
	if headers, _ := c.Last(); headers.Get("x-key") != key {
		t.Errorf("%v", headers)
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "who is "+r.Header.Get("x-key")+"?", http.StatusUnauthorized)
	}))
	defer echo.Close()
	if err := traces.Ask(t.Context(), settings(echo.URL)); err == nil || strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "401") {
		t.Errorf("%v", err)
	}
	var taken atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken.Add(1) }))
	defer thief.Close()
	redirect := httptest.NewServer(http.RedirectHandler(thief.URL+"/v1/traces", http.StatusTemporaryRedirect))
	defer redirect.Close()
	if err := traces.Ask(t.Context(), settings(redirect.URL)); err == nil || taken.Load() != 0 {
		t.Errorf("%v, and %d requests at the other address", err, taken.Load())
	}
}

// TestCollectorsThatAreAway checks that a run never waits for a collector, that the spans in memory are bounded, that the end of Close's
// context ends Close, and that failures have one warning.
func TestCollectorsThatAreAway(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "64")
	record := func(made *traces.Traces, runs int) {
		for range runs {
			run := newRun()
			made.RunBegins(t.Context(), run, run.BegunAt)
			made.RunEnded(run, turn.Report{Outcome: turn.Answered, BegunAt: run.BegunAt, Took: time.Second})
		}
	}
	t.Run("refuses connections", func(t *testing.T) {
		gone := httptest.NewServer(nil)
		gone.Close()
		made, log := open(t, settings(gone.URL), new(store))
		record(made, 200)
		if err := made.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if made.Lost() != 400 {
			t.Errorf("%d spans are lost, want 400", made.Lost())
		}
		if strings.Count(log.String(), "level=WARN") != 1 || strings.Contains(log.String(), key) {
			t.Errorf("%s", log)
		}
	})
	t.Run("hangs", func(t *testing.T) {
		c, hung, released := tracestest.New(t), make(chan struct{}, 100), make(chan struct{})
		hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hung <- struct{}{}
			<-released
			c.Config.Handler.ServeHTTP(w, r)
		}))
		defer hangs.Close()
		made, log := open(t, settings(hangs.URL), new(store))
		record(made, 64)
		<-hung
		record(made, 4000)
		const waiting = 2048 // with those that are being sent
		if want := int64(2*(64+4000) - waiting); made.Lost() != want {
			t.Errorf("%d spans are lost, want %d", made.Lost(), want)
		}
		closing, _ := open(t, settings(hangs.URL), new(store))
		record(closing, 64)
		<-hung
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := closing.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		close(released)
		const most = waiting + 128 // and the spans of closing
		c.Await(t, func(spans []tracestest.Span) bool { return len(spans) >= waiting })
		last := newRun()
		last.Agent = "last"
		made.RunBegins(t.Context(), last, last.BegunAt)
		made.RunEnded(last, turn.Report{Outcome: turn.Answered, BegunAt: last.BegunAt})
		spans := c.Await(t, func(spans []tracestest.Span) bool {
			return slices.ContainsFunc(spans, func(s tracestest.Span) bool { return s.Name == "turn last" })
		})
		if n := len(spans) - 2; n > most {
			t.Errorf("%d spans waited, want at most %d", n, most)
		}
		if err := made.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if warned, well := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO"); warned != 1 || well != 1 {
			t.Errorf("%s", log)
		}
	})
}

// TestResource checks what names a node to the collector, and that a faulty variable turns nothing off.
func TestResource(t *testing.T) {
	for name, test := range map[string]struct{ service, attributes, wantService, wantDeployment string }{
		"by itself":        {wantService: "parley"},
		"of the variables": {service: "helpdesk", attributes: "deployment.environment.name=prod,service.name=other", wantService: "helpdesk", wantDeployment: "prod"},
		"faulty":           {attributes: "garbage", wantService: "parley"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_SERVICE_NAME", test.service)
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", test.attributes)
			c, run := tracestest.New(t), newRun()
			made, _ := open(t, settings(c.URL), new(store))
			made.RunBegins(t.Context(), run, run.BegunAt)
			made.RunEnded(run, turn.Report{Outcome: turn.Answered, BegunAt: run.BegunAt})
			if err := made.Close(t.Context()); err != nil {
				t.Error(err)
			}
			_, about := c.Last()
			if about["service.name"] != test.wantService || about["deployment.environment.name"] != test.wantDeployment || about["service.instance.id"] != "n" || about["service.version"] != "1" {
				t.Errorf("%v", about)
			}
		})
	}
}

// TestCallersOfSeveralPlaces checks that a request has a caller's place only if exactly one header names it.
func TestCallersOfSeveralPlaces(t *testing.T) {
	const one, two = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	made, _ := open(t, settings("http://127.0.0.1:1"), new(store))
	for _, values := range [][]string{{one}, {one, two}, {}, {"nonsense"}} {
		made.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if has := !trace.From(r.Context()).IsZero(); has != (len(values) == 1 && values[0] == one) {
				t.Errorf("%v: %v", values, trace.From(r.Context()))
			}
		})).ServeHTTP(httptest.NewRecorder(), &http.Request{Header: http.Header{trace.Header: values}})
	}
}

// TestOthersReadPlaces checks that OpenTelemetry's own reader finds the place of a call.
func TestOthersReadPlaces(t *testing.T) {
	made, _ := open(t, settings("http://127.0.0.1:1"), new(store))
	ctx, header := made.RunBegins(t.Context(), newRun(), time.Now()), http.Header{}
	place := trace.From(ctx)
	trace.SetHeader(ctx, header)
	read := api.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.HeaderCarrier(header)))
	if read.TraceID() != place.Trace || read.SpanID() != place.Span || !read.IsSampled() {
		t.Errorf("%v is read as %v", header, read)
	}
}

// TestAttempts checks an attempt with its tools, and that a run which this node has not begun is in the trace that the store knows.
func TestAttempts(t *testing.T) {
	c, first := tracestest.New(t), listing.Traced{UUID: uuid.NewString()}
	old := newRun()
	old.Fresh = false
	s := &store{first: map[string]listing.Traced{old.ID: first}}
	made, _ := open(t, settings(c.URL), s)
	begun := time.Now()
	place := trace.From(made.RunBegins(t.Context(), old, begun))
	if want := trace.Of(first.UUID, "", nil, 1); place.Trace != want.Trace || s.asked.Load() != 1 {
		t.Errorf("%v, want %v", place, want)
	}
	made.RunEnded(old, turn.Report{
		Outcome: turn.Failed, Err: errors.New("the words of a person"), BegunAt: begun, Took: time.Second, FirstToken: time.Millisecond,
		Usage: assembly.Usage{TokensIn: 7, TokensOut: 9, Finish: "length"},
		Tools: []turn.Tool{{Name: "look", BegunAt: begun, EndedAt: begun.Add(time.Millisecond)}, {Name: "look", ID: "1", BegunAt: begun, EndedAt: begun, Failed: true, Reason: "words"}},
	})
	made.Delivered(&outbox.Delivery{Run: old.ID, Key: "k", Kind: outbox.KindPost, CreatedAt: begun}, outbox.Failed, begun)
	made.Delivered(&outbox.Delivery{Run: old.ID, Key: "s", Kind: outbox.KindRestate, CreatedAt: begun}, outbox.Sent, begun) // its first post has a span
	made.Delivered(&outbox.Delivery{Run: "unknown", Key: "k", Kind: outbox.KindPost, CreatedAt: begun}, outbox.Failed, begun)
	if err := made.Close(t.Context()); err != nil {
		t.Error(err)
	}
	spans := c.Await(t, func(spans []tracestest.Span) bool { return len(spans) == 5 })
	tools := map[string]bool{}
	for _, span := range spans {
		switch span.Name {
		case "chat m":
			for name, want := range map[string]string{"gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "9", "gen_ai.response.finish_reasons": "length", "error.type": "failed"} {
				if !strings.Contains(span.About[name], want) {
					t.Errorf("%s is %q, want %s", name, span.About[name], want)
				}
			}
			if !span.Failed || len(span.Events) != 1 {
				t.Errorf("%+v", span)
			}
		case "execute_tool look":
			tools[span.ID] = span.Failed
		}
	}
	if len(tools) != 2 || bytes.Contains(c.Bytes(), []byte("words")) {
		t.Errorf("%+v", spans)
	}
}

// TestARunThatEndsWhileItWaits checks that the attempts of a run that ends between two attempts are below the span of its turn.
func TestARunThatEndsWhileItWaits(t *testing.T) {
	c, run := tracestest.New(t), newRun()
	first, ended := listing.Traced{UUID: run.Messages[0].UUID}, run.BegunAt.Add(time.Minute)
	made, _ := open(t, settings(c.URL), &store{
		first: map[string]listing.Traced{run.ID: first},
		ended: map[string]listing.Run{run.ID: {ID: run.ID, Agent: run.Agent, Workspace: run.Workspace, Thread: run.ThreadKey, BegunAt: run.BegunAt, EndedAt: ended}},
	})
	made.RunBegins(t.Context(), run, run.BegunAt)
	made.RunEnded(run, turn.Report{Outcome: turn.Retried, BegunAt: run.BegunAt, Took: time.Second})
	made.WaitingRunEnded(run.ID, turn.Canceled)
	made.WaitingRunEnded("unknown", turn.Canceled)
	if err := made.Close(t.Context()); err != nil {
		t.Error(err)
	}
	spans := c.Await(t, func(spans []tracestest.Span) bool { return len(spans) == 2 })
	attempt, whole := spans[0], spans[1]
	origin := trace.Of(first.UUID, "", nil, 1)
	if attempt.Parent != whole.ID || whole.Trace != origin.ID() || whole.Parent != hex.EncodeToString(origin.Span[:]) || whole.Name != "turn helper" {
		t.Errorf("%+v\n%+v", attempt, whole)
	}
	if whole.Begun != uint64(run.BegunAt.UnixNano()) || whole.End != uint64(ended.UnixNano()) || whole.About["parley.outcome"] != "canceled" || whole.About["parley.thread"] != string(run.ThreadKey) {
		t.Errorf("%+v", whole)
	}
}

// TestTheLogNamesTraces checks that each record about a run names its trace once, however the record has the run.
func TestTheLogNamesTraces(t *testing.T) {
	c := tracestest.New(t)
	made, log := open(t, settings(c.URL), new(store))
	run := newRun()
	id := trace.From(made.RunBegins(t.Context(), run, time.Now())).ID()
	l := made.Logger(made.Log)
	for _, say := range []func(){
		func() { l.Info("a", "run", run.ID) }, func() { l.With("run", run.ID).Info("a", "run", run.ID) },
		func() { l.With("x", 1).With("run", run.ID).Info("a", "y", 1) },
	} {
		log.Reset()
		if say(); strings.Count(log.String(), "trace="+id) != 1 {
			t.Errorf("%s", log)
		}
	}
	log.Reset()
	l.Info("a", "run", "another")
	l.WithGroup("g").Info("a", "run", run.ID)
	if strings.Contains(log.String(), "trace") {
		t.Errorf("%s", log)
	}
}

// TestManyRuns checks that the memory for runs is bounded, and that the store has the rest.
func TestManyRuns(t *testing.T) {
	s := &store{first: map[string]listing.Traced{}}
	made, _ := open(t, settings("http://127.0.0.1:1"), s)
	var all []*runs.Run
	for range 5000 {
		run := newRun()
		s.first[run.ID] = listing.Traced{UUID: run.Messages[0].UUID}
		made.RunBegins(t.Context(), run, time.Now())
		all = append(all, run)
	}
	if n := s.asked.Load(); n != 0 {
		t.Errorf("%d looks into the store for new runs", n)
	}
	for _, run := range []*runs.Run{all[0], all[4999]} {
		place := trace.From(made.Sending(t.Context(), &outbox.Delivery{Run: run.ID, Key: "k"}))
		if want := trace.Of(run.Messages[0].UUID, "", nil, 1); place.Trace != want.Trace {
			t.Errorf("%v, want %v", place, want)
		}
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("%d looks into the store, want one", n)
	}
}

// BenchmarkRun measures what traces cost a run, without them and with them.
func BenchmarkRun(b *testing.B) {
	taken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer taken.Close()
	on, _ := open(b, settings(taken.URL), new(store))
	for name, made := range map[string]*traces.Traces{"off": nil, "on": on} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run, report := newRun(), turn.Report{Outcome: turn.Answered, Took: time.Second}
			for b.Loop() {
				begun := run.BegunAt
				trace.SetHeader(made.RunBegins(context.Background(), run, begun), http.Header{})
				report.BegunAt = begun
				made.RunEnded(run, report)
			}
		})
	}
}
