package agenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/stream"
)

// Protocol is a kind of agent under test.
type Protocol struct {
	// New returns an agent with these settings for the server at an address. Canary is its
	// secret.
	New func(address string, config remote.Config, transport http.RoundTripper) turn.Agent
	// Answer is the event stream of an answer whose text is Text.
	Answer string
	Text   string
	// Beginning is the start of such a stream with a part of the text.
	Beginning string
	// Say returns the event stream of an answer in these pieces; nil for a kind whose thinking does not
	// come as text.
	Say func(pieces ...string) string
	// Grows are event streams of n like parts, by the kind of the part.
	Grows map[string]func(n int) string
	// Signs says that the requests carry a signature instead of the secret.
	Signs bool
	// Tools says that the agent gets the token of its run.
	Tools bool
	// Card answers the GET with which the agent learns of its server; nil if there is none. Such an agent looks again at a
	// task that has begun, as one with Accepts does.
	Card http.HandlerFunc
	// Accepts answers the request before that of the stream; nil if there is none. Then the
	// agent may ask for a lost stream again, until its time is over.
	Accepts http.HandlerFunc
}

// mostStreams is the number of times that an agent may ask for a stream.
const mostStreams = 11

// Test checks the promises of an agent whose server misbehaves: each run ends within its
// bounds after one request, with the answer or with an error that names the cause.
func Test(t *testing.T, p Protocol) {
	t.Run("framing", p.framing)
	t.Run("refusals", p.refusals)
	t.Run("broken streams", p.brokenStreams)
	t.Run("lost connections", p.lostConnections)
	t.Run("hangs", p.hangs)
	t.Run("floods", p.floods)
	t.Run("secrets", p.secrets)
	t.Run("run token", p.runToken)
	t.Run("notes", p.notes)
	t.Run("outdated inputs", p.outdatedInputs)
	t.Run("work", p.work)
	if p.Say != nil {
		t.Run("thinking", p.thinking)
	}
}

// run runs an agent in a bubble, against a handler of its streams. It returns the number of
// requests for a stream.
func (p Protocol) run(t *testing.T, config remote.Config, handler http.HandlerFunc) (emitted []stream.Message, requests int, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), config.Timeout, errLate) // as a turn's runner does
		defer cancel()
		agent := p.New("http://agent.test/"+pathCanary, config, Pipes(t, p.streams(func(w http.ResponseWriter, r *http.Request) {
			requests++
			handler(w, r)
		})))
		emitted, err = Run(ctx, agent, Hello())
	})
	return emitted, requests, err
}

var errLate = errors.New("too late")

// streams returns a handler that accepts what comes before a stream.
func (p Protocol) streams(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case p.Accepts != nil && r.Method == http.MethodPost:
			p.Accepts(w, r)
		case p.Card != nil && r.Method == http.MethodGet:
			p.Card(w, r)
		default:
			handler(w, r)
		}
	}
}

// once reports whether the agent asked for the stream as often as it may.
func (p Protocol) once(requests int) bool {
	return requests == 1 || (p.Accepts != nil || p.Card != nil) && requests <= mostStreams
}

// framing checks the variants of a stream that the format allows.
func (p Protocol) framing(t *testing.T) {
	bytewise := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			Stream(w, "")
			for i := range len(text) {
				Write(w, text[i:i+1])
			}
		}
	}
	whole := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { Stream(w, text) }
	}
	for name, write := range map[string]func(http.ResponseWriter){
		"as it is":        whole(p.Answer),
		"byte by byte":    bytewise(p.Answer),
		"CRLF":            bytewise(strings.ReplaceAll(p.Answer, "\n", "\r\n")),
		"byte order mark": bytewise("\ufeff" + p.Answer),
		"comments":        whole(": wait\n\n" + strings.ReplaceAll(p.Answer, "\n\n", "\n\n: more\n\n")),
		"other fields":    whole("retry: 5\n\n" + p.numbered()),
		"no space":        whole(strings.ReplaceAll(p.Answer, "data: ", "data:")),
		"noise after it":  whole(p.Answer + "data: noise\n\n"),
	} {
		emitted, requests, err := p.run(t, remote.DefaultConfig(), func(w http.ResponseWriter, _ *http.Request) { write(w) })
		if diff := cmp.Diff([]string{p.Text}, Texts(emitted, stream.Answer)); err != nil || diff != "" || requests != 1 {
			t.Errorf("%s: %d requests, %v\n%s", name, requests, err, diff)
		}
		if chunks := strings.Join(Texts(emitted, stream.StreamingChunk), ""); chunks != p.Text {
			t.Errorf("%s: the chunks are %q", name, chunks)
		}
	}
}

// work doubles the parts of an answer. The work for them, counted in allocated bytes, grows with their number and
// not with its square.
func (p Protocol) work(t *testing.T) {
	grows := map[string]func(n int) string{}
	maps.Copy(grows, p.Grows)
	if p.Say != nil {
		for name, piece := range map[string]string{"words": "word ", "lines": "a\n", "signs of a fence": "```\n", "beginnings of a header": "\n[Ol", "beginnings of a thought": "<thi"} {
			grows[name] = func(n int) string { return p.Say(slices.Repeat([]string{piece}, n)...) }
		}
		grows["thoughts"] = func(n int) string {
			return p.Say(append(append([]string{"<think>"}, slices.Repeat([]string{"hm "}, n)...), "</think>", "Hi")...)
		}
	}
	for name, grow := range grows {
		spent := func(n int) uint64 {
			answer := grow(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, _, err := p.run(t, remote.DefaultConfig(), func(w http.ResponseWriter, _ *http.Request) { Stream(w, answer) }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		spent(1)
		const others = 4 << 20 // more than the bytes that the rest of the process allocates meanwhile
		if once, twice := spent(4000), spent(8000); twice > 3*once+others {
			t.Errorf("%s: %d bytes for 4,000 parts, %d for 8,000", name, once, twice)
		}
	}
}

// numbered returns the answer with an id for each event.
func (p Protocol) numbered() string {
	var b strings.Builder
	for i, event := range strings.SplitAfter(p.Answer, "\n\n") {
		if event != "" {
			fmt.Fprintf(&b, "id: %d\nevent: x\n%s", i, event)
		}
	}
	return b.String()
}

// refusals checks responses that are not an answer.
func (p Protocol) refusals(t *testing.T) {
	const elsewhere = "http://elsewhere.test/"
	for _, c := range []struct {
		status    int
		header    [2]string
		permanent bool
		pause     time.Duration
	}{
		{400, [2]string{}, true, 0},
		{401, [2]string{}, true, 0},
		{404, [2]string{}, true, 0},
		{408, [2]string{}, false, 0},
		{429, [2]string{"Retry-After", "7"}, false, 7 * time.Second},
		{503, [2]string{"Retry-After", "60"}, false, time.Minute},
		{500, [2]string{}, false, 0},
		{302, [2]string{"Location", elsewhere}, true, 0},
		{307, [2]string{"Location", elsewhere}, true, 0},
		{200, [2]string{"Content-Type", "text/html"}, true, 0},
	} {
		config := remote.DefaultConfig()
		config.Timeout = time.Hour // enough for every pause
		emitted, requests, err := p.run(t, config, func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "agent.test" {
				t.Error("the agent followed a redirect")
			}
			w.Header().Set(c.header[0], c.header[1])
			w.WriteHeader(c.status)
			Write(w, "busy "+Canary)
		})
		fault, ok := errors.AsType[*remote.Error](err)
		if !ok || fault.Permanent != c.permanent || fault.Pause() != c.pause || fault.Status != c.status || !p.once(requests) || len(emitted) != 0 {
			t.Errorf("%d: %d requests, emitted %d messages, %+v", c.status, requests, len(emitted), err)
		}
	}
}

// brokenStreams checks that a stream that fails never yields an answer.
func (p Protocol) brokenStreams(t *testing.T) {
	for name, end := range map[string]func(w http.ResponseWriter){
		"it ends":            func(http.ResponseWriter) {},
		"it is cut":          func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"half an event":      func(w http.ResponseWriter) { Write(w, `data: {"ty`) },
		"no JSON":            func(w http.ResponseWriter) { Write(w, "data: Internal Server Error\n\n") },
		"other JSON":         func(w http.ResponseWriter) { Write(w, "data: [1]\n\n") },
		"an enormous line":   func(w http.ResponseWriter) { Write(w, "data: "+strings.Repeat("x", 2<<20)) },
		"many lines of data": func(w http.ResponseWriter) { Write(w, strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1100)) },
	} {
		emitted, requests, err := p.run(t, remote.DefaultConfig(), func(w http.ResponseWriter, _ *http.Request) {
			Stream(w, p.Beginning)
			end(w)
		})
		fault, ok := errors.AsType[*remote.Error](err)
		if !ok || fault.Permanent || len(Texts(emitted, stream.Answer)) != 0 || !p.once(requests) {
			t.Errorf("%s: %d requests, emitted %d messages, %v", name, requests, len(emitted), err)
		}
	}
}

// lostConnections checks a server that closes a connection after it has read the second
// request over it. A client that then repeats the request by itself asks twice.
func (p Protocol) lostConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, posts := false, 0
		answer := p.streams(func(w http.ResponseWriter, _ *http.Request) { Stream(w, p.Answer) })
		agent := p.New("http://agent.test", remote.DefaultConfig(), Pipes(t, func(w http.ResponseWriter, r *http.Request) {
			if !broken {
				answer(w, r)
				return
			}
			posts++
			panic(http.ErrAbortHandler)
		}))
		if _, err := Run(t.Context(), agent, Hello()); err != nil {
			t.Fatal(err)
		}
		broken = true
		_, err := Run(t.Context(), agent, Hello())
		if fault, ok := errors.AsType[*remote.Error](err); !ok || fault.Permanent || posts != 1 {
			t.Errorf("%d requests, %v", posts, err)
		}
	})
}

// hangs checks servers that stop writing.
func (p Protocol) hangs(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(w http.ResponseWriter, gone <-chan struct{})
		want  time.Duration
		text  string
	}{
		"before the response": {func(http.ResponseWriter, <-chan struct{}) {}, time.Minute, "first_byte"},
		"after the headers":   {func(w http.ResponseWriter, _ <-chan struct{}) { Stream(w, "") }, time.Minute, "first_byte"},
		"after a comment":     {func(w http.ResponseWriter, _ <-chan struct{}) { Stream(w, ": wait\n\n") }, time.Minute, "first_byte"},
		"after comments": {func(w http.ResponseWriter, gone <-chan struct{}) {
			for range 4 { // each is a sign of life
				Stream(w, ": wait\n\n")
				select {
				case <-gone:
				case <-time.After(50 * time.Second):
				}
			}
		}, 210 * time.Second, "first_byte"},
		"in the answer": {func(w http.ResponseWriter, _ <-chan struct{}) { Stream(w, p.Beginning) }, 5 * time.Minute, errLate.Error()},
	} {
		if p.Accepts != nil {
			c.want, c.text = 5*time.Minute, errLate.Error() // it asks again
		}
		synctest.Test(t, func(t *testing.T) {
			agent := p.New("http://agent.test", remote.DefaultConfig(), Pipes(t, p.streams(func(w http.ResponseWriter, r *http.Request) {
				c.begin(w, r.Context().Done())
				<-r.Context().Done()
			})))
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, errLate)
			defer cancel()
			begin := time.Now()
			emitted, err := Run(ctx, agent, Hello())
			if took := time.Since(begin); took != c.want || err == nil || !strings.Contains(err.Error(), c.text) || len(Texts(emitted, stream.Answer)) != 0 {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
		})
	}
}

// floods checks that a run ends although the server never stops writing.
func (p Protocol) floods(t *testing.T) {
	config := remote.DefaultConfig()
	config.MaxBytes = 4 << 10
	for name, piece := range map[string]string{
		"comments": ": " + strings.Repeat("x", 1000) + "\n\n",
		"one line": strings.Repeat("x", 1000),
	} {
		emitted, _, err := p.run(t, config, func(w http.ResponseWriter, r *http.Request) {
			for Stream(w, p.Beginning); r.Context().Err() == nil; {
				Write(w, piece)
			}
		})
		if err == nil || !strings.Contains(err.Error(), "max_bytes") || len(Texts(emitted, stream.Answer)) != 0 {
			t.Errorf("%s: emitted %d messages, %v", name, len(emitted), err)
		}
	}
}

// pathCanary is a secret in the agent's address.
const pathCanary = "canary-path-51d2e84b"

// secrets checks a server that repeats the request's address and headers in every text.
func (p Protocol) secrets(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter, text string){
		"a refusal": func(w http.ResponseWriter, text string) { http.Error(w, text, http.StatusUnauthorized) },
		"a type": func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "text/"+text)
			fmt.Fprint(w, text)
		},
		"a wrong event": func(w http.ResponseWriter, text string) { Stream(w, "data: "+text+"\n\n") },
	} {
		heard := false
		_, _, err := p.run(t, remote.DefaultConfig(), func(w http.ResponseWriter, r *http.Request) {
			heard = strings.Contains(fmt.Sprint(r.Header), Canary)
			if !strings.Contains(r.URL.Path, pathCanary) {
				t.Errorf("%s: the request went to %s", name, r.URL)
			}
			write(w, Canary+" "+pathCanary)
		})
		if text := fmt.Sprintf("%+v %#v", err, err); err == nil || strings.Contains(text, Canary) || strings.Contains(text, pathCanary) {
			t.Errorf("%s: %+v", name, err)
		}
		if heard == p.Signs {
			t.Errorf("%s: the request shows the secret: %v", name, heard)
		}
	}
}

// outdatedInputs checks that an input without its proof never reaches the server. A request's
// headers may, because they contain nothing of the input.
func (p Protocol) outdatedInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inputs := 0
		agent := p.New("http://agent.test", remote.DefaultConfig(), Pipes(t, Protocol{Card: p.Card}.streams(func(_ http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); len(body) > 0 {
				inputs++
			}
		})))
		emitted, err := Run(turn.WithProof(t.Context(), func() error { return errLate }), agent, Hello())
		if !errors.Is(err, errLate) || inputs != 0 || len(emitted) != 0 {
			t.Errorf("%d inputs, emitted %d messages, %v", inputs, len(emitted), err)
		}
	})
}

// thinking checks that the thinking at the beginning of a text is a THOUGHT, wherever the text is cut.
func (p Protocol) thinking(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		want   []string // the THOUGHTs and the ANSWER
	}{
		{[]string{"<think>\nHm. ", "So.\n</think>\n\nHi"}, []string{"Hm. So.", "Hi"}},
		{[]string{"<", "thi", "nk>Hm.</thi", "nk>", "\n\n", "Hi </think>"}, []string{"Hm.", "Hi </think>"}},
		{[]string{"Hm. ", "So.", "</thi", "nk>Hi"}, []string{"Hm. So.", "Hi"}},
		{[]string{"<|chan", "nel>thought\nHm.<channel", "|>Hi"}, []string{"Hm.", "Hi"}},
		{[]string{"Use `<think>`", " and `</think>`."}, []string{"Use `<think>` and `</think>`."}},
	} {
		emitted, _, err := p.run(t, remote.DefaultConfig(), func(w http.ResponseWriter, _ *http.Request) { Stream(w, p.Say(c.pieces...)) })
		got := append(Texts(emitted, stream.Thought), Texts(emitted, stream.Answer)...)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", c.pieces, err, diff)
		}
	}
}

// notes checks that the facts beside the messages reach the server, if the settings want them.
func (p Protocol) notes(t *testing.T) {
	for _, notes := range [][]string{remote.DefaultConfig().Notes, nil} {
		synctest.Test(t, func(t *testing.T) {
			var sent strings.Builder
			answer := p.streams(func(w http.ResponseWriter, _ *http.Request) { Stream(w, p.Answer) })
			config := remote.DefaultConfig()
			config.Notes = notes
			agent := p.New("http://agent.test", config, Pipes(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent.Write(body)
				answer(w, r)
			}))
			input := Hello()
			input.Notes = assembly.Notes{Now: time.Now(), Names: []assembly.Name{{Token: "<@U2>", Name: "Zoe Zebra"}}, Place: event.Place{Topic: "Zoe Zebra's"}}
			_, err := Run(t.Context(), agent, input)
			if want := len(notes) > 0; err != nil || strings.Contains(sent.String(), "Zoe Zebra") != want {
				t.Errorf("notes %q: %v\n%s", notes, err, sent.String())
			}
		})
	}
}
