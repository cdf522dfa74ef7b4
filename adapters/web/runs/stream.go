package runs

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"parley/adapters/web/exchange"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

// listUpdates responds with the messages of a run so far that are kept, as
// {"messages":[…],"dropped":n,"run_id","next"}: GET /runs/{workflowId}/{runId}/updates?since=&after=&format=.
// A list ends at storage.PageBytes; the rest is read with its next as after.
func (c call) listUpdates(w http.ResponseWriter, r *http.Request) error {
	var faults event.FieldErrors
	checkQuery(r, &faults, "since", "after")
	reader, after := runReader{runs: c.Runs, since: sinceOf(r, &faults), form: formOf(r, &faults)}, exchange.SeqOf(r, "after", &faults)
	if len(faults) > 0 {
		return faults
	}
	end, err := c.Threads.Streams.Begin(r.Context(), c.Owner())
	if err != nil {
		return err
	}
	defer end()
	run, err := c.run(r)
	var list []runs.Event
	var next int64
	var dropped int
	if reader.run = run.ID; err == nil && run.ID != "" {
		list, next, dropped, err = reader.page(r.Context(), after)
	}
	if err != nil {
		return err
	}
	zipped(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		more := []exchange.Member{{Key: "dropped", Value: dropped}}
		if run.ID != "" { // the path may have another name of the run
			more = append(more, exchange.Member{Key: "run_id", Value: run.ID})
		}
		if next > 0 { // the document knows no further member
			more = append(more, exchange.Member{Key: "next", Value: next})
		}
		_ = exchange.RespondList(w, "messages", list, func(e runs.Event) any { return reader.form.of(run.ID, e.Message) }, more...)
	})).ServeHTTP(w, r)
	return nil
}

// zipped wraps a handler: it compresses each body for a client that accepts gzip. The options
// have no fault.
var zipped, _ = gzhttp.NewWrapper(gzhttp.MinSize(0), gzhttp.EnableZstd(false))

// streamRun responds with the messages of a run as they come: GET
// /runs/{workflowId}/{runId}/stream?skipHistory=&since= and GET
// /api/v1/agent/runs/{runId}/stream?since=. A client that comes back with Last-Event-ID
// continues behind that message.
func (c call) streamRun(w http.ResponseWriter, r *http.Request) error {
	var faults event.FieldErrors
	checkQuery(r, &faults, "since", "skipHistory")
	reader := runReader{runs: c.Runs, since: sinceOf(r, &faults), form: formOf(r, &faults)}
	skip := r.URL.Query().Get("skipHistory")
	faults.Check(skip == "" || skip == "true" || skip == "false", "skipHistory", "must be true or false")
	if len(faults) > 0 {
		return faults
	}
	run, err := c.run(r)
	if err != nil {
		return err
	}
	may := func(ctx context.Context) error { return c.readsRun(ctx, &run) }
	if reader.run = run.ID; run.ID == "" {
		changed := reader.await(r.Context(), func() (string, error) {
			named, err := c.namedRun(r)
			return named.ID, err
		})
		return c.Threads.Streams.Follow(w, r, c, exchange.Source{Changed: changed, Next: reader.sent, May: may})
	}
	var heard bool
	if id, invalid := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); invalid == nil && id >= 0 {
		reader.asked, reader.after, reader.since = true, id, time.Time{}
		heard, err = reader.heard(r.Context())
	} else if skip == "true" && reader.since.IsZero() {
		err = reader.skip(r.Context())
	}
	switch {
	case err != nil:
		return err
	case heard: // an EventSource connects again until it gets this status
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	changed, stop := c.Runs.FollowRun(run.ID)
	defer stop()
	return c.Threads.Streams.Follow(w, r, c, exchange.Source{Changed: changed, Next: reader.sent, May: may})
}

// form is the form of a run's messages.
type form struct {
	readable bool // with readable names, and not compact
	html     bool // with the text of whole messages as HTML
}

// formOf reads the form from the query; compact if it is absent.
func formOf(r *http.Request, faults *event.FieldErrors) form {
	format := cmp.Or(r.URL.Query().Get("format"), "compact")
	faults.Check(format == "compact" || format == "agent", "format", "must be compact or agent")
	return form{readable: format == "agent", html: exchange.HTMLOf(r, faults)}
}

// of returns a message of a run in the form. The words of people and pieces of a text are no Markdown.
func (f form) of(run string, m stream.Message) any {
	if f.html && m.Type != stream.Question && m.Type != stream.StreamingChunk && m.Text != "" {
		m.HTML = exchange.HTML(m.Text)
	}
	if f.readable {
		return m.Readable(run)
	}
	return m
}

// checkQuery adds a fault for each key of the query that the route does not know. Each route of a run's
// messages knows format and html, the run's thread, and the ticket of its caller.
func checkQuery(r *http.Request, faults *event.FieldErrors, known ...string) {
	for key := range r.URL.Query() {
		faults.Check(key == "format" || key == "html" || key == "ticket" || key == "thread_id" || slices.Contains(known, key), key, "is no key of this query")
	}
}

// sinceOf reads the time in milliseconds since 1970 from the query; zero if it is absent.
func sinceOf(r *http.Request, faults *event.FieldErrors) time.Time {
	s := r.URL.Query().Get("since")
	if s == "" || s == "0" {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	faults.Check(err == nil && ms >= 0, "since", "must be a time in milliseconds since 1970")
	return time.UnixMilli(ms)
}
