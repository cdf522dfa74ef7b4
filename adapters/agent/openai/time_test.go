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

	"parley/adapters/agent/openai"
	"parley/assembly/stream"
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

func TestRetryAfterIsObeyed(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		after  func() string
		want   time.Duration
	}{
		{"429 with seconds", 429, func() string { return "7" }, 14 * time.Second},
		{"503 with seconds", 503, func() string { return "60" }, 2 * time.Minute},
		{"429 with a date", 429, func() string { return time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat) }, 18 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var ids []string
			emitted, err := run(t.Context(), bubbled(t, nil, refusals(2, c.status, c.after, &ids)))
			if err != nil || len(of(emitted, stream.Answer)) != 1 {
				t.Fatalf("%s: %v, %v", c.name, emitted, err)
			}
			if took := time.Since(begin); took != c.want {
				t.Errorf("%s: took %v, want %v", c.name, took, c.want)
			}
			if diff := cmp.Diff([]string{"run-1", "run-1", "run-1"}, ids); diff != "" {
				t.Errorf("%s: the requests of one run have these ids: %s", c.name, diff)
			}
		})
	}
}

func TestPausesGrowWithoutRetryAfter(t *testing.T) {
	for _, after := range []func() string{nil, func() string { return "soon" }, func() string { return "-1" }, func() string { return "0" }} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var ids []string
			_, err := run(t.Context(), bubbled(t, nil, refusals(99, 500, after, &ids)))
			if f := fault(t, err); f.Permanent || f.Status != 500 || !strings.Contains(err.Error(), "busy") {
				t.Error(err)
			}
			if took := time.Since(begin); len(ids) != 4 || took < 3500*time.Millisecond || took > 5250*time.Millisecond {
				t.Errorf("%d requests in %v", len(ids), took)
			}
		})
	}
}

// TestLongRetryAfterEndsRun checks that a run returns a long Retry-After instead of waiting
// for it.
func TestLongRetryAfterEndsRun(t *testing.T) {
	for _, c := range []struct {
		after   string
		timeout time.Duration
		want    time.Duration
	}{
		{"61", time.Hour, 61 * time.Second},
		{"40", 30 * time.Second, 40 * time.Second},
		{"99999999999999999", time.Hour, 365 * 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var ids []string
			agent := bubbled(t, func(config *openai.Config) { config.Timeout = c.timeout },
				refusals(1, 429, func() string { return c.after }, &ids))
			_, err := run(t.Context(), agent)
			if f := fault(t, err); f.Permanent || f.RetryAfter != c.want {
				t.Errorf("%s: retry after %v, %v", c.after, f.RetryAfter, err)
			}
			if took := time.Since(begin); took != 0 || len(ids) != 1 {
				t.Errorf("%s: %d requests in %v", c.after, len(ids), took)
			}
		})
	}
}

func TestBrokenConnectionsAreRetriedBeforeAnswer(t *testing.T) {
	for name, breaks := range map[string]func(http.ResponseWriter){
		"before the response": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"before the first delta": func(w http.ResponseWriter) {
			speak(w).raw(": wait\n\n")
			panic(http.ErrAbortHandler)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			emitted, err := run(t.Context(), bubbled(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked < 3 {
					breaks(w)
				}
				speak(w).delta("hi").done()
			}))
			if err != nil || asked != 3 || len(of(emitted, stream.Answer)) != 1 {
				t.Errorf("%s: %d requests, emitted %v, error %v", name, asked, emitted, err)
			}
		})
	}
}

func TestNoRetryAfterFirstDelta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		emitted, err := run(t.Context(), bubbled(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			speak(w).delta("It was")
			panic(http.ErrAbortHandler)
		}))
		if f := fault(t, err); f.Permanent || asked != 1 {
			t.Errorf("%d requests, error %v", asked, err)
		}
		if diff := cmp.Diff([]string{"It was"}, texts(emitted)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestHangsEnd checks servers that stop writing at every point of a run.
func TestHangsEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(http.ResponseWriter)
		want  time.Duration
		text  string
	}{
		{"before the response", func(http.ResponseWriter) {}, time.Minute, "first_byte"},
		{"after the headers", func(w http.ResponseWriter) { speak(w).raw("") }, time.Minute, "first_byte"},
		{"after a comment", func(w http.ResponseWriter) { speak(w).raw(": working\n\n") }, 5 * time.Minute, "timeout"},
		{"in the answer", func(w http.ResponseWriter) { speak(w).delta("It was") }, 5 * time.Minute, "timeout"},
		{"in a refusal", func(w http.ResponseWriter) { w.WriteHeader(400); speaker{w}.raw("bad") }, 5 * time.Minute, "400 Bad Request: bad"},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			emitted, err := run(t.Context(), bubbled(t, nil, func(w http.ResponseWriter, r *http.Request) {
				c.begin(w)
				<-r.Context().Done()
			}))
			if took := time.Since(begin); took != c.want || err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: after %v: %v", c.name, took, err)
			}
			if fault(t, err); len(of(emitted, stream.Answer)) != 0 {
				t.Errorf("%s: the run emitted %v", c.name, emitted)
			}
		})
	}
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
		"while it pauses":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "30"); w.WriteHeader(503) },
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

// TestChunksArePaced checks that a chunk is emitted 16 ms after the last one or with 200
// characters, and that a pause of the model does not delay the rest.
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
		want := []chunk{{0, "a"}, {16, "bcd"}, {35, "e"}, {51, "f"}, {1036, "g"}, {1038, long + "h"}, {1039, "i"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
