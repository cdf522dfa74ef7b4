package httpcall

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters"
)

// stalledContext is the context of a process after a pause: its deadline has passed,
// but no timer has fired yet.
type stalledContext struct {
	context.Context
	deadline time.Time
}

func (s stalledContext) Deadline() (time.Time, bool) { return s.deadline, true }

// TestNoWriteAfterTheDeadline checks that the result does not depend on a timer.
func TestNoWriteAfterTheDeadline(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer server.Close()
	client := NewClient(NewTransport())
	post := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("text=hi"))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Do(client, request, 100)
		return err
	}
	if err := post(stalledContext{t.Context(), time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	var failure *adapters.SendError
	if err := post(stalledContext{t.Context(), time.Now().Add(-time.Second)}); !errors.As(err, &failure) || failure.Failure != adapters.NotSent {
		t.Errorf("got %v, want NotSent", err)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d requests arrived, want 1", n)
	}
}

// TestConnectionChecksTheClockBeforeWriting also checks that the connection works for
// the next request.
func TestConnectionChecksTheClockBeforeWriting(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := dial(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	writeBy(c, time.Now().Add(-time.Nanosecond))
	if n, err := c.Write([]byte("POST")); n != 0 || !errors.Is(err, errTooLate) {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
	for _, deadline := range []time.Time{time.Now().Add(time.Hour), {}} {
		writeBy(c, deadline)
		if _, err := c.Write([]byte("POST / HTTP/1.1\r\n")); err != nil {
			t.Error(err)
		}
	}
}
