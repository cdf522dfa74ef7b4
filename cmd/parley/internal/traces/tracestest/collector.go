// Package tracestest is a collector of traces for tests: a server that speaks OTLP over HTTP.
package tracestest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span that a collector has got.
type Span struct {
	Trace, ID, Parent string // in hexadecimal; Parent is empty for none
	Name              string
	Begun, End        uint64 // in nanoseconds since 1970
	About             map[string]string
	Events            []string
	Links             []Link
	Failed            bool
}

// Link is a link of a span.
type Link struct{ Trace, Span, Meaning string }

// Collector keeps what programs export.
type Collector struct {
	*httptest.Server
	mu      sync.Mutex
	away    bool
	spans   []Span
	bodies  bytes.Buffer
	headers http.Header
	about   map[string]string // the resource
	calls   int
	changed chan struct{}
}

// New returns a collector that the test closes.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{changed: make(chan struct{}), headers: http.Header{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Server.Close)
	return c
}

// SetAway lets the collector refuse what comes.
func (c *Collector) SetAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	defer func() { close(c.changed); c.changed = make(chan struct{}) }()
	if c.away || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	raw, err := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(raw, &request) != nil {
		http.Error(w, "not a request", http.StatusBadRequest)
		return
	}
	c.headers = r.Header.Clone()
	c.bodies.Write(raw)
	for _, of := range request.ResourceSpans {
		c.about = values(of.Resource.GetAttributes())
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, read(s))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func read(s *traces.Span) Span {
	out := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), Name: s.Name,
		Begun: s.StartTimeUnixNano, End: s.EndTimeUnixNano, About: values(s.Attributes), Failed: s.Status.GetCode() == traces.Status_STATUS_CODE_ERROR,
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, e.Name)
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, Link{hex.EncodeToString(l.TraceId), hex.EncodeToString(l.SpanId), values(l.Attributes)["parley.link"]})
	}
	return out
}

// values returns attributes as texts.
func values(list []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		default:
			out[a.Key] = strings.TrimSpace(a.Value.String())
		}
	}
	return out
}

// patience bounds the wait of a test.
const patience = 2 * time.Minute

// Await waits until the spans meet a condition, and returns them.
func (c *Collector) Await(t testing.TB, met func(spans []Span) bool) []Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		c.mu.Lock()
		spans, changed := slices.Clone(c.spans), c.changed
		c.mu.Unlock()
		if met(spans) {
			return spans
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the collector has not got the spans: %+v", spans)
		}
	}
}

// AwaitCalls waits for a number of calls.
func (c *Collector) AwaitCalls(t testing.TB, n int) {
	t.Helper()
	c.Await(t, func([]Span) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.calls >= n
	})
}

// Bytes returns all that was exported, as the requests had it before compression.
func (c *Collector) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bodies.Bytes())
}

// Last returns the headers and the resource of the last request.
func (c *Collector) Last() (headers http.Header, about map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers, c.about
}
