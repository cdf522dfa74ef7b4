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
	fault         bool // the server is at fault, and no log has the error
}

// Error returns the message.
func (f *failure) Error() string { return f.message }

// Fail returns the error of a request whose response has a status, a code and a message, and the faulty
// fields of the request.
func Fail(status int, code, message string, fields ...event.FieldError) error {
	return &failure{status: status, code: code, message: message, fields: fields}
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

// refuse responds to the error of a handler, and reports its code to the guard.
func refuse(w http.ResponseWriter, g *guard.Guard, notFound string, err error) {
	f := failureOf(err, notFound)
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if f.fault {
		g.Fault(err)
	}
	g.Rejected(f.code)
	body := map[string]any{"code": f.code, "message": f.message}
	if len(f.fields) > 0 {
		body["fields"] = f.fields.Capped()
	}
	_ = Respond(w, f.status, map[string]any{"error": body})
}

// Explain returns the status and the message of a handler's error, for a response that is not JSON.
// Faults of the request are part of the message.
func Explain(err error, notFound string) (status int, message string) {
	f := failureOf(err, notFound)
	if len(f.fields) > 0 {
		return f.status, f.fields.Capped().Error()
	}
	return f.status, f.message
}

// IsFault reports whether the server is at fault for the error of a handler, and no log has the error.
func IsFault(err error) bool { return failureOf(err, "").fault }

// failureOf returns the failure for the error of a handler: a failure, faults of the request, or an error
// of the store.
func failureOf(err error, notFound string) *failure {
	f, _ := errors.AsType[*failure](err)
	faults, _ := errors.AsType[event.FieldErrors](err)
	rule, broken := errors.AsType[runinput.Fault](err)
	switch {
	case f != nil:
		return f
	case broken:
		return &failure{status: http.StatusBadRequest, code: "invalid", message: rule.Error()}
	case faults != nil:
		return &failure{status: http.StatusBadRequest, code: "invalid", message: "the request has faults", fields: faults}
	case errors.Is(err, storage.ErrNotFound):
		return &failure{status: http.StatusNotFound, code: "not-found", message: cmp.Or(notFound, "the workspace has no such thread")}
	case errors.Is(err, runs.ErrEnded):
		return &failure{status: http.StatusGone, code: "ended", message: err.Error()}
	}
	logged, words := storage.Unavailable(err) || errors.Is(err, adapters.ErrBusy), "the store does not answer now; send the request again"
	if errors.Is(err, storage.ErrFull) {
		words = "the disk of the store is full; send the request again later"
	}
	return &failure{status: http.StatusServiceUnavailable, code: "busy", message: words, fault: !logged}
}
