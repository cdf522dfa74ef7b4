package openai_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/stream"
)

// refusals returns a handler that refuses the first requests with a status and a Retry-After
// header, and answers the later ones. It appends each request's id to ids.
func refusals(times int, status int, after func() string, ids *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*ids = append(*ids, r.Header.Get("Idempotency-Key"))
		if len(*ids) > times {
			speak(w).delta("hi").done()
			return
		}
		if after != nil {
			w.Header().Set("Retry-After", after())
		}
		http.Error(w, `{"error":{"message":"busy"}}`, status)
	}
}

// TestRetryAfter checks that a run makes one request and returns the pause that the server
// asks for.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		status int
		after  func() string
		want   time.Duration
	}{
		{429, func() string { return "7" }, 7 * time.Second},
		{503, func() string { return "60" }, time.Minute},
		{429, func() string { return time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat) }, 9 * time.Second},
		{429, func() string { return "99999999999999999" }, 365 * 24 * time.Hour},
		{500, func() string { return "soon" }, 0},
		{500, func() string { return "-1" }, 0},
		{408, func() string { return "" }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var ids []string
			_, err := run(t.Context(), bubbled(t, nil, refusals(99, c.status, c.after, &ids)))
			if f := fault(t, err); f.Permanent || f.Status != c.status || f.Pause() != c.want || !strings.Contains(err.Error(), "busy") {
				t.Errorf("%d %s: retry after %v, %v", c.status, c.after(), f.RetryAfter, err)
			}
			if diff := cmp.Diff([]string{"run-1"}, ids); diff != "" {
				t.Errorf("%d: the ids of the requests: %s", c.status, diff)
			}
		})
	}
}

// TestAHangInARefusal checks a server that stops writing in an error's body.
func TestAHangInARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // as a turn's runner does
		defer cancel()
		_, err := run(ctx, bubbled(t, nil, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			speaker{w}.raw("bad")
			<-r.Context().Done()
		}))
		if took := time.Since(begin); took != 5*time.Minute || err == nil || !strings.Contains(err.Error(), "400 Bad Request: bad") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// TestFinishReasonEndsAnswer checks that a run does not wait for a server that keeps the
// stream open after finish_reason.
func TestFinishReasonEndsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		emitted, err := run(t.Context(), bubbled(t, nil, func(w http.ResponseWriter, r *http.Request) {
			speak(w).delta("hi").finish("stop")
			<-r.Context().Done()
		}))
		if took := time.Since(begin); err != nil || took > time.Second || len(of(emitted, stream.Answer)) != 1 {
			t.Errorf("after %v: %v, %v", took, emitted, err)
		}
	})
}

func TestCancelledRunReturnsCause(t *testing.T) {
	stopped := errors.New("the message was deleted")
	for name, handler := range map[string]http.HandlerFunc{
		"while it streams": func(w http.ResponseWriter, r *http.Request) { speak(w).delta("hi"); <-r.Context().Done() },
		"while it waits":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			begin := time.Now()
			time.AfterFunc(3*time.Second, func() { cancel(stopped) })
			_, err := run(ctx, bubbled(t, nil, handler))
			if took := time.Since(begin); err != stopped || took != 3*time.Second {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
		})
	}
}

// TestChunksArePaced checks that the text of 16 ms is one chunk, or several ones if it has more than 200
// characters, that the chunks behind the first one come at multiples of 16 ms, and that a pause of the model does not delay the rest.
func TestChunksArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("ü", 199)
		agent := bubbled(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			s := speak(w)
			for _, step := range []struct {
				after time.Duration
				delta string
			}{
				{0, "a"}, {5, "b"}, {5, "c"}, {5, "d"}, {20, "e"}, {1, "f"}, {1000, "g"}, {1, long}, {1, "h"}, {1, "i"},
			} {
				<-time.After(step.after * time.Millisecond)
				s.delta(step.delta)
			}
			s.done()
		})
		type chunk struct {
			At   time.Duration
			Text string
		}
		var got []chunk
		begin := time.Now()
		err := agent.Run(t.Context(), hello(), func(m stream.Message) error {
			if m.Type == stream.StreamingChunk {
				got = append(got, chunk{time.Since(begin) / time.Millisecond, m.Text})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []chunk{{0, "a"}, {16, "bcd"}, {35, "e"}, {48, "f"}, {1036, "g"}, {1056, long + "h"}, {1056, "i"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
