// Package exchange reads the requests of the HTTP API and writes the responses: JSON, lists, errors and
// event streams.
package exchange

import (
	"cmp"
	"errors"
	"net/http"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// failure is the error of a request. The response has its status, code, message and fields.
type failure struct {
	status        int
	code, message string
	fields        event.FieldErrors
}

// Error returns the message.
func (f *failure) Error() string { return f.message }

// Fail returns the error of a request whose response has a status, a code and a message, and the faulty
// fields of the request.
func Fail(status int, code, message string, fields ...event.FieldError) error {
	return &failure{status, code, message, fields}
}

// Handler returns a handler that responds with serve, or to its error. notFound is the message of the
// error for storage.ErrNotFound; empty for the usual one.
func Handler(g *guard.Guard, notFound string, serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			refuse(w, g, notFound, err)
		}
	}
}

// refuse responds to the error of a handler, and reports its code to the guard. The error is a
// failure, faults of the request, or the store's.
func refuse(w http.ResponseWriter, g *guard.Guard, notFound string, err error) {
	f, _ := errors.AsType[*failure](err)
	faults, _ := errors.AsType[event.FieldErrors](err)
	rule, broken := errors.AsType[runinput.Fault](err)
	switch {
	case f != nil:
	case broken:
		f = &failure{http.StatusBadRequest, "invalid", rule.Error(), nil}
	case faults != nil:
		f = &failure{http.StatusBadRequest, "invalid", "the request has faults", faults}
	case errors.Is(err, storage.ErrNotFound):
		f = &failure{http.StatusNotFound, "not-found", cmp.Or(notFound, "the workspace has no such thread"), nil}
	case errors.Is(err, runs.ErrEnded):
		f = &failure{http.StatusGone, "ended", err.Error(), nil}
	default:
		if !storage.Unavailable(err) && !errors.Is(err, adapters.ErrBusy) { // these are logged elsewhere
			g.Fault(err)
		}
		w.Header().Set("Retry-After", "1")
		f = &failure{http.StatusServiceUnavailable, "busy", "the store does not answer now; send the request again", nil}
	}
	g.Rejected(f.code)
	body := map[string]any{"code": f.code, "message": f.message}
	if len(f.fields) > 0 {
		body["fields"] = f.fields.Capped()
	}
	_ = Respond(w, f.status, map[string]any{"error": body})
}
