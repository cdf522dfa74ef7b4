package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/config/secret"
	"parley/ingest/event"
)

// keysOf reads a body as the daemon does.
func keysOf(t *testing.T, body []byte) event.Keys {
	t.Helper()
	keys := slack.Normalizer{Workspace: workspace}.Keys(event.Envelope{Workspace: workspace, Platform: event.Slack, Body: body}, facts{})
	if keys.Settled != nil {
		t.Fatalf("settled as %+v: %s", keys.Settled, body)
	}
	return keys
}

func TestEventsAreReadAsWhatTheyAre(t *testing.T) {
	l := newLedger(echoed)
	for _, c := range []*conversation{newConversation(0), newConversation(3)} {
		first, m := l.say(c), l.say(c)
		thread := event.ThreadKey("slack:bench:" + c.place.channel)
		if !m.direct() {
			thread += event.ThreadKey(":" + first.ts)
		}
		if said := keysOf(t, m.said()); said.Kind != event.KindMessage || said.Thread != thread {
			t.Errorf("message %+v, want thread %s", said, thread)
		}
		subject := c.place.channel + "/" + m.ts
		for want, body := range map[event.Kind][]byte{
			event.KindEdit: m.edited(1, l.nextTS()), event.KindDelete: m.removed(l.nextTS()), event.KindReaction: m.reacted(l.nextTS()),
		} {
			if keys := keysOf(t, body); keys.Kind != want || keys.Subject != subject {
				t.Errorf("%+v, want a %s of %s", keys, want, subject)
			}
		}
	}
}

func TestTwinsAreTwins(t *testing.T) {
	m := newLedger(echoed).say(newConversation(0))
	said, mentioned := keysOf(t, m.said()), keysOf(t, m.mentioned())
	if said.Dedupe != mentioned.Twin || said.Twin != mentioned.Dedupe || said.Dedupe == mentioned.Dedupe {
		t.Errorf("%+v and %+v", said, mentioned)
	}
}

func TestAnEditHoldsTheNewText(t *testing.T) {
	m := newLedger(echoed).say(newConversation(0))
	normalized, err := slack.Normalizer{Workspace: workspace}.Normalize(t.Context(), event.Envelope{Body: m.edited(1, "1700000000.000001")}, directory{})
	if err != nil || normalized.Message == nil || normalized.Message.Content != m.text(1) {
		t.Errorf("%+v, %v", normalized, err)
	}
}

// directory knows nobody.
type directory struct{ facts }

func (directory) State() adapters.State { return nil }

func (directory) User(context.Context, string) (adapters.User, bool) { return adapters.User{}, false }

// A reply of the model stands in three posts, and each is a paragraph of it.
func TestAnAnswerIsThreePosts(t *testing.T) {
	adapter := slack.New(workspace, slack.Config{APIURL: "http://127.0.0.1/", BotToken: secret.New("x")})
	texts := answerOf(123456, 3)
	if diff := cmp.Diff(texts, adapter.Format(strings.Join(texts, ""), nil)); diff != "" {
		t.Error(diff)
	}
}

func TestMarksAreReadBack(t *testing.T) {
	id, revision, part, ok := readMark("[Human 1 (<@U1>)]: <@U0BOT> " + mark(17, 2, 3) + " words m1 r1 p1")
	if id != 17 || revision != 2 || part != 3 || !ok {
		t.Error(id, revision, part, ok)
	}
	for _, text := range []string{"", "m1 r2", "Sorry, something went wrong.", "am1 r2 p3", mark(1, 2, 3) + "4x"} {
		if _, _, _, ok := readMark(text); ok {
			t.Errorf("read a mark in %q", text)
		}
	}
}

// hook is a server on the other end of a line.
func hook(t *testing.T, serve http.HandlerFunc) *line {
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	l := &line{address: strings.TrimPrefix(server.URL, "http://")}
	t.Cleanup(l.close)
	return l
}

func TestALineIsKeptOpenAndSaysWhatIsARetry(t *testing.T) {
	var peers, retries []string
	l := hook(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != hookPath {
			t.Errorf("path %s", r.URL.Path)
		}
		peers, retries = append(peers, r.RemoteAddr), append(retries, r.Header.Get("X-Slack-Retry-Num"))
	})
	for attempt := range 2 {
		status, err := l.post(signed(l.address, []byte(`{}`), attempt, time.Now()))
		if status != http.StatusOK || err != nil {
			t.Fatal(status, err)
		}
	}
	if peers[0] != peers[1] {
		t.Errorf("connections %v", peers)
	}
	if diff := cmp.Diff([]string{"", "1"}, retries); diff != "" {
		t.Error(diff)
	}
}

func TestALineOutlivesABrokenConnection(t *testing.T) {
	var calls atomic.Int64
	l := hook(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if status, err := l.post(signed(l.address, []byte(`{}`), 0, time.Now())); err == nil {
		t.Errorf("status %d of a connection that was cut", status)
	}
	if status, err := l.post(signed(l.address, []byte(`{}`), 1, time.Now())); status != http.StatusServiceUnavailable || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestTheModelRepeatsTheLastMark(t *testing.T) {
	l := newLedger(echoed)
	m, err := startModel(l, manner{thinking: func(int) time.Duration { return 0 }, answer: answerOf})
	if err != nil {
		t.Fatal(err)
	}
	request := `{"messages":[{"role":"user","content":"` + mark(1, 0, 1) + `"},{"role":"user","content":"` + mark(2, 5, 1) + `"}]}`
	response, err := http.Post(m.url+"/chat/completions", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	answer := readStream(t, response)
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(answerOf(2, 5), ""); answer != want {
		t.Errorf("answer of %d bytes: %.100q", len(answer), answer)
	}
	if len(l.asks) != 1 || l.asks[0].id != 2 || l.asks[0].revision != 5 || !l.asks[0].ended.After(l.asks[0].arrived) {
		t.Errorf("on record: %+v", l.asks)
	}
}

// readStream joins the deltas of a chat completion.
func readStream(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for data := range strings.SplitSeq(string(body), "\n\n") {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		data = strings.TrimPrefix(data, "data: ")
		if data == "" || data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		text.WriteString(chunk.Choices[0].Delta.Content)
	}
	return text.String()
}
