package openai_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"parley/adapters/agent/openai"
	"parley/config/secret"
	"parley/ingest/stream"
)

func TestRefusedRequests(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{
		{400, `{"error":{"message":"max_tokens is too large","type":"invalid_request_error"}}`, "400 Bad Request: max_tokens is too large"},
		{401, `{"error":{"message":"Incorrect API key"}}`, "401 Unauthorized (check the agent's key): Incorrect API key"},
		{403, `{"error":"not yours"}`, "403 Forbidden (check the agent's key): not yours"},
		{404, `{"detail":"model not found"}`, "404 Not Found (check the agent's address and model): model not found"},
		{307, ``, "307 Temporary Redirect (redirects are not followed"},
		{418, "<html>\n a\tteapot</html>", "418 I'm a teapot: <html> a teapot</html>"},
		{200, `<html>`, `the answer is "application/json", not an event stream`},
	} {
		calls := 0
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		emitted, err := run(t.Context(), agent)
		if f := fault(t, err); !f.Permanent || f.Status != c.status || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: permanent %v, status %d, %v", c.status, f.Permanent, f.Status, err)
		}
		if calls != 1 || len(emitted) != 0 {
			t.Errorf("%d: %d requests, emitted %v", c.status, calls, emitted)
		}
	}
}

// TestStreamsThatFail checks that a failed stream never yields an ANSWER.
func TestStreamsThatFail(t *testing.T) {
	for _, c := range []struct {
		name      string
		speak     func(speaker)
		permanent bool
		want      string
	}{
		{"cut off between events", func(s speaker) { s.delta("It was") }, false, "ended without finish_reason or [DONE]"},
		{"no event at all", func(s speaker) { s.raw(": nothing\n\n") }, false, "ended without finish_reason or [DONE]"},
		{"cut off in a chunk", func(s speaker) { s.delta("It").raw(`data: {"choices":[{"del`) }, false, "invalid chunk"},
		{"no JSON", func(s speaker) { s.delta("It").raw("data: Internal Server Error\n\n") }, false, "invalid chunk"},
		{"other JSON", func(s speaker) { s.delta("It").raw("data: [1]\n\n") }, false, "invalid chunk"},
		{"connection lost", func(s speaker) { s.delta("It"); panic(http.ErrAbortHandler) }, false, "the answer was interrupted"},
		{"an error", func(s speaker) { s.delta("It").raw(`data: {"error":{"message":"overloaded"}}` + "\n\n").done() }, false, "the stream reports: overloaded"},
		{"an error with a status", func(s speaker) { s.delta("It").raw(`data: {"error":{"code":502,"message":"gone"}}` + "\n\n").done() }, false, "gone"},
		{"a permanent error", func(s speaker) { s.raw(`data: {"error":{"code":400,"message":"no such model"}}` + "\n\n").done() }, true, "no such model"},
		{"an error at the top", func(s speaker) {
			s.raw(`data: {"object":"error","message":"too long","code":400}` + "\n\n").done()
		}, true, "too long"},
		{"an error of a choice", func(s speaker) {
			s.delta("It").raw(`data: {"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"gone"}}]}` + "\n\n").done()
		}, false, "gone"},
		{"a line of an error", func(s speaker) { s.delta("It").raw(`error: {"code":500,"message":"gone"}` + "\n\n") }, false, "gone"},
		{"an error's text", func(s speaker) { s.delta("It").raw(`data: {"error":"overloaded"}` + "\n\n").done() }, false, "overloaded"},
		{"a long line", func(s speaker) { s.delta("It").raw("data: " + strings.Repeat("x", 10<<20)) }, false, "longer than max_bytes allows"},
		{"many data lines", func(s speaker) { s.delta("It").raw(strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 10_000)) }, false, "longer than max_bytes allows"},
		{"no text", func(s speaker) { s.finish("stop").done() }, false, `returned no text (finish_reason "stop")`},
		{"white space", func(s speaker) { s.delta(" \n").finish("stop").done() }, false, "returned no text"},
		{"a tool call without text", func(s speaker) {
			s.raw(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"find"}}]}}]}` + "\n\n").finish("tool_calls").done()
		}, false, `the model called the tool "find"`},
		{"the length limit before any text", func(s speaker) { s.finish("length").done() }, true, `finish_reason "length"`},
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) { c.speak(speak(w)) })
		emitted, err := run(t.Context(), agent)
		if f := fault(t, err); f.Permanent != c.permanent || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: permanent %v, %v", c.name, f.Permanent, err)
		}
		if answers := of(emitted, stream.Answer); len(answers) != 0 {
			t.Errorf("%s: the run emitted the answer %q", c.name, answers[0].Text)
		}
	}
}

// TestFloodsEnd checks that a run ends although the server never stops writing.
func TestFloodsEnd(t *testing.T) {
	for name, piece := range map[string]func(speaker){
		"of text":      func(s speaker) { s.delta(strings.Repeat("flood ", 100)) },
		"of comments":  func(s speaker) { s.raw(": " + strings.Repeat("x", 1000) + "\n\n") },
		"of reasoning": func(s speaker) { s.raw(`data: {"choices":[{"delta":{"reasoning":"hm"}}]}` + "\n\n") },
		"of one line":  func(s speaker) { s.raw(strings.Repeat("x", 1000)) },
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for s := speak(w); r.Context().Err() == nil; {
				piece(s)
			}
		}))
		settings := config(server.URL)
		settings.MaxBytes = 16 << 10
		emitted, err := run(t.Context(), openai.New(settings, nil, http.DefaultTransport))
		if f := fault(t, err); f.Permanent || !strings.Contains(err.Error(), "max_bytes") {
			t.Errorf("a flood %s: %v", name, err)
		}
		if got := len(strings.Join(texts(emitted), "")); got > 16<<10 || len(of(emitted, stream.Answer)) != 0 {
			t.Errorf("a flood %s: the run emitted %d bytes", name, got)
		}
		server.Close()
	}
}

// TestErrorsHideKey checks servers that repeat the key in every text that an error quotes.
func TestErrorsHideKey(t *testing.T) {
	heard := ""
	for name, answer := range map[string]func(http.ResponseWriter){
		"an error": func(w http.ResponseWriter) { http.Error(w, "bad key "+canary, http.StatusUnauthorized) },
		"an error's JSON": func(w http.ResponseWriter) {
			http.Error(w, `{"error":{"message":"bad key `+canary+`"}}`, http.StatusUnauthorized)
		},
		"a media type": func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/"+canary); fmt.Fprint(w, canary) },
		"a stream":     func(w http.ResponseWriter) { speak(w).raw(`data: {"error":"bad key ` + canary + `"}` + "\n\n") },
		"a finish":     func(w http.ResponseWriter) { speak(w).finish(canary).done() },
		"a header": func(w http.ResponseWriter) {
			conn, out, _ := http.NewResponseController(w).Hijack()
			defer conn.Close()
			fmt.Fprintf(out, "%s is not HTTP\r\n\r\n", canary)
			out.Flush()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			agent := bubbled(t, nil, func(w http.ResponseWriter, r *http.Request) {
				heard = r.Header.Get("Authorization")
				if asked++; asked > 1 {
					http.Error(w, "second request", 400)
					return
				}
				answer(w)
			})
			_, err := run(t.Context(), agent)
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			for _, verb := range []string{"%v", "%+v", "%#v"} {
				if text := fmt.Sprintf(verb, err); strings.Contains(text, canary) {
					t.Errorf("%s: %s prints %s", name, verb, text)
				}
			}
			if heard != "Bearer "+canary {
				t.Errorf("%s: the server received the header %q", name, heard)
			}
		})
	}
}

// TestErrorsHideAddress checks an unreachable address that contains secrets.
func TestErrorsHideAddress(t *testing.T) {
	down := errors.New("down")
	settings := config("http://user:" + canary + "@127.0.0.1")
	settings.BaseURL += "?key=" + canary
	settings.APIKey = secret.Value{}
	agent := openai.New(settings, nil, roundTripper(func(r *http.Request) (*http.Response, error) { return nil, down }))
	_, err := run(t.Context(), agent)
	if err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("the error is %v", err)
	}

	settings.BaseURL = "http://" + canary + "\x7f/"
	_, err = run(t.Context(), openai.New(settings, nil, http.DefaultTransport))
	if f := fault(t, err); !f.Permanent || strings.Contains(err.Error(), canary) {
		t.Errorf("the error is %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
