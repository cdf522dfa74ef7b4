package traces

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"parley/config"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/trace"
)

// batchEvery is the time after which spans are sent, unless OTEL_BSP_SCHEDULE_DELAY has another one. It bounds the spans that a node
// loses if its process ends.
const batchEvery = time.Second

// Open returns Traces that export spans as the settings say. It calls no collector yet.
func Open(ctx context.Context, o Options) (*Traces, error) {
	to, err := otlptracehttp.New(ctx, optionsOf(o.Traces)...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "parley"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Node),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, err
	}
	t := &Traces{Options: o, places: map[string]trace.Place{}}
	waiting := maxWaiting
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		waiting = n
	}
	t.exporter = &exporter{SpanExporter: to, log: o.Log, to: o.Traces, most: int64(waiting)}
	batches := []sdk.BatchSpanProcessorOption{sdk.WithMaxQueueSize(waiting)}
	if _, err := strconv.Atoi(os.Getenv("OTEL_BSP_SCHEDULE_DELAY")); err != nil {
		batches = append(batches, sdk.WithBatchTimeout(batchEvery))
	}
	t.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(queue{sdk.NewBatchSpanProcessor(t.exporter, batches...), t.exporter}),
		sdk.WithResource(about), sdk.WithIDGenerator(places{}), sdk.WithSampler(sdk.AlwaysSample()))
	t.tracer = t.provider.Tracer("parley", api.WithInstrumentationVersion(o.Version))
	return t, nil
}

// optionsOf returns the options of a client of the collector. The environment has the rest. The client would print a variable that it
// cannot read, such as the headers, which are secrets; package config warns of them without their values.
func optionsOf(c config.Traces) []otlptracehttp.Option {
	otel.SetLogger(logr.Discard())
	options := []otlptracehttp.Option{otlptracehttp.WithProxy(direct), otlptracehttp.WithEndpointURL(c.URL)}
	if len(c.Headers) > 0 {
		headers := map[string]string{}
		for name, value := range c.Headers {
			headers[name] = value.Reveal()
		}
		options = append(options, otlptracehttp.WithHeaders(headers))
	}
	return options
}

// Ask reports whether the collector takes spans: it gets a request without any.
func Ask(ctx context.Context, c config.Traces) error {
	client := otlptracehttp.NewClient(append(optionsOf(c), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))...)
	if err := client.Start(ctx); err != nil {
		return err
	}
	defer func() { _ = client.Stop(ctx) }()
	if err := client.UploadTraces(ctx, nil); err != nil {
		return errors.New(clean(err, c.Headers))
	}
	return nil
}

// clean returns the words of an error of the collector, without the values of headers, which the collector may repeat.
func clean(err error, headers map[string]secret.Value) string {
	words := event.Text(err.Error())
	for _, value := range headers {
		if !value.IsZero() {
			words = strings.ReplaceAll(words, value.Reveal(), "[secret]")
		}
	}
	return event.Cut(words, maxCause)
}

// direct refuses redirects: they would take the headers, which are secrets, to an address that is not configured.
func direct(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errors.New("the collector redirects: name its final address in tracing.otlp")
	}
	return http.ProxyFromEnvironment(r)
}

// Close sends the spans that wait, until ctx ends.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// maxWaiting bounds the spans that wait for the collector, unless OTEL_BSP_MAX_QUEUE_SIZE has another bound.
const maxWaiting = sdk.DefaultMaxQueueSize

// Lost returns the number of spans that the collector did not take, or not in time.
func (t *Traces) Lost() int64 { return t.exporter.lost.Load() }

// exporter sends spans. The first lost span has a warning, and the next success without a lost one has a word.
type exporter struct {
	sdk.SpanExporter
	log     *slog.Logger
	to      config.Traces
	most    int64        // spans that may wait
	waiting atomic.Int64 // spans, with those that are being sent
	lost    atomic.Int64
	full    atomic.Bool // spans had no room since the last success
	warned  atomic.Bool
}

// lose counts lost spans, and warns once for a trouble.
func (e *exporter) lose(spans int, warning string, more ...any) {
	e.lost.Add(int64(spans))
	if !e.warned.Swap(true) {
		e.log.Warn(warning, append([]any{"collector", e.to.URL}, more...)...)
	}
}

// queue lets spans wait for the exporter, as far as there is room. The SDK drops further ones and does not tell.
type queue struct {
	sdk.SpanProcessor
	*exporter
}

// OnEnd implements sdk.SpanProcessor.
func (q queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.waiting.Add(1) <= q.most {
		q.SpanProcessor.OnEnd(s)
		return
	}
	q.waiting.Add(-1)
	q.full.Store(true)
	q.lose(1, "the collector of traces takes spans too slowly; those without room in memory are lost")
}

// maxCause bounds the error of a collector in the log, in bytes.
const maxCause = 300

// ExportSpans implements sdk.SpanExporter. It returns no error, so that the SDK logs none for each batch.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.waiting.Add(-int64(len(spans)))
	switch {
	case err != nil:
		e.lose(len(spans), "the collector of traces does not take spans; they are lost until it does", "err", clean(err, e.to.Headers))
	case !e.full.Swap(false) && e.warned.Swap(false):
		e.log.Info("the collector of traces takes spans again", "collector", e.to.URL)
	}
	return nil
}

// places gives a span the ids of the place of its context.
type places struct{}

// NewIDs implements sdk.IDGenerator.
func (places) NewIDs(ctx context.Context) (api.TraceID, api.SpanID) {
	p := trace.From(ctx)
	return p.Trace, p.Span
}

// NewSpanID implements sdk.IDGenerator.
func (places) NewSpanID(ctx context.Context, _ api.TraceID) api.SpanID { return trace.From(ctx).Span }

// span is a span that has ended.
type span struct {
	at         trace.Place
	parent     trace.Place // zero for none
	name       string
	kind       api.SpanKind
	begun, end time.Time
	about      []attribute.KeyValue
	links      []api.Link
}

// record exports a span if its trace is recorded. more may add to it.
func (t *Traces) record(s span, more ...func(api.Span)) {
	if !s.at.Sampled {
		return
	}
	ctx := trace.With(context.Background(), s.at)
	if !s.parent.IsZero() {
		ctx = api.ContextWithSpanContext(ctx, contextOf(s.parent))
	}
	if s.end.Before(s.begun) {
		s.end = s.begun
	}
	_, made := t.tracer.Start(ctx, s.name, api.WithTimestamp(s.begun), api.WithSpanKind(s.kind), api.WithAttributes(s.about...), api.WithLinks(s.links...))
	for _, add := range more {
		add(made)
	}
	made.End(api.WithTimestamp(s.end))
}

func contextOf(p trace.Place) api.SpanContext {
	flags := api.TraceFlags(0)
	return api.NewSpanContext(api.SpanContextConfig{TraceID: p.Trace, SpanID: p.Span, TraceFlags: flags.WithSampled(p.Sampled)})
}

// link returns a link to a place, with a word for its meaning.
func link(to trace.Place, meaning string) api.Link {
	return api.Link{SpanContext: contextOf(to), Attributes: []attribute.KeyValue{attribute.String("parley.link", meaning)}}
}

// text returns an attribute; none for an empty value.
func text(name, value string) []attribute.KeyValue {
	if value == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String(name, value)}
}

// earlier returns the earlier one of two times; the other one if one is zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
