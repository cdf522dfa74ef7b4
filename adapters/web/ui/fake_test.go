package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/adapters/browsertest"
	"parley/adapters/web/static"
	"parley/adapters/web/ui"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

// The run that most tests show.
const (
	threadID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	runID    = "run-1"
	token    = "a-token-of-the-page"
	personID = "user:0b0b0b0b-0000-4000-8000-000000000001"
)

// fake is a server that speaks the daemon's protocol for one thread with a run, and serves the element. A message that it takes begins a
// run of its own, by the name of the message.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	changed  *sync.Cond
	messages []string // of the run, in compact form
	thread   []event  // of the thread
	posts    []post   // the requests that have a body
	pages    map[string]string
	scripts  map[string]string
	origin   string // whose pages may call
	policy   string // Content-Security-Policy of the pages
	cut      bool   // streams end at once
	refuse   bool   // a request with a body is refused
	unasked  bool   // a message asks nobody
}

// post is a request with a body.
type post struct{ path, token, body string }

// event is an event of the stream of the thread.
type event struct {
	kind string // empty for a message
	data string
}

// serve starts a fake with the messages of its run. Its questions are messages of the thread.
func serve(t *testing.T, messages ...string) *fake {
	f := &fake{messages: messages, pages: map[string]string{}, scripts: map[string]string{}}
	f.changed = sync.NewCond(&f.mu)
	for _, m := range messages {
		var asked struct {
			T int
			M string
		}
		if err := json.Unmarshal([]byte(m), &asked); err == nil && asked.T == 8 {
			f.write(asked.M, fmt.Sprintf(`,"sender_id":%q,"role":"user","trigger":"run","run_id":%q`, personID, runID))
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ui/{file}", ui.File)
	mux.HandleFunc("GET /sdk/parley.js", static.File("parley.js"))
	mux.HandleFunc("GET /runs/{thread}/{run}/updates", f.updates)
	mux.HandleFunc("GET /runs/{thread}/{run}/stream", f.stream)
	mux.HandleFunc("GET /api/v1/chat/caller", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"`+personID+`","name":"Nora"}`)
	})
	mux.HandleFunc("GET /api/v1/chat/threads/{thread}/messages", f.list)
	mux.HandleFunc("GET /api/v1/chat/threads/{thread}/stream", f.news)
	mux.HandleFunc("POST /", f.take)
	mux.HandleFunc("GET /{page}", f.page)
	mux.HandleFunc("GET /scripts/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, f.scripts[r.PathValue("name")])
	})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.origin != "" && r.Header.Get("Origin") == f.origin {
			w.Header().Set("Access-Control-Allow-Origin", f.origin)
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID")
		}
		if r.Method == http.MethodOptions {
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { f.end(); f.Close() })
	return f
}

// end ends the open streams, and those that are opened until begin.
func (f *fake) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
	f.changed.Broadcast()
}

func (f *fake) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = false
}

// say adds messages to the run.
func (f *fake) say(messages ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages = append(f.messages, messages...)
	f.changed.Broadcast()
}

// turn gives the next run messages of its own. Without it, each run has the messages of all.
func (f *fake) turn(messages ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages = messages
	f.changed.Broadcast()
}

// write adds a message to the thread, with its further members.
func (f *fake) write(content, more string) {
	raw, _ := json.Marshal(content)
	seq := len(f.thread) + 1
	f.thread = append(f.thread, event{data: fmt.Sprintf(`{"id":"message-%d","thread_id":%q,"thread_seq":%d,"content":%s,"created_at":"2026-09-21T12:00:00Z"%s}`, seq, threadID, seq, raw, more)})
}

// tell adds an event to the thread's stream: without a kind, Sam's message, or one with the further members that begin with a comma.
func (f *fake) tell(kind, data string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case kind == "" && data[0] == ',':
		f.write("words", data)
	case kind == "":
		f.write(data, sam+`,"role":"user","trigger":"none"`)
	default:
		f.thread = append(f.thread, event{kind, data})
	}
	f.changed.Broadcast()
}

func (f *fake) list(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, e := range f.thread {
		if e.kind == "" {
			list = append(list, e.data)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"messages":[%s],"next":null}`, strings.Join(list, ","))
}

// news sends the events of the thread behind a thread_seq, which is the number of an event.
func (f *fake) news(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	f.follow(w, r, func() {
		for ; after < len(f.thread); after++ {
			if e := f.thread[after]; e.kind == "" {
				fmt.Fprintf(w, "id: %d\ndata: %s\n\n", after+1, e.data)
			} else if r.URL.Query().Get("work") == "true" || e.kind == "edit" || e.kind == "delete" {
				fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.kind, e.data)
			}
		}
	})
}

// follow sends the next events when the fake has changed, until its streams end.
func (f *fake) follow(w http.ResponseWriter, r *http.Request, next func()) {
	w.Header().Set("Content-Type", "text/event-stream")
	stop := context.AfterFunc(r.Context(), f.changed.Broadcast)
	defer stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = io.WriteString(w, ":\n\n")
	for !f.cut && r.Context().Err() == nil {
		next()
		_ = http.NewResponseController(w).Flush()
		f.changed.Wait()
	}
}

func (f *fake) page(w http.ResponseWriter, r *http.Request) {
	body, ok := f.pages[r.PathValue("page")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if f.policy != "" {
		w.Header().Set("Content-Security-Policy", f.policy)
	}
	_, _ = io.WriteString(w, body)
}

// since returns the messages from a time on, in milliseconds.
func (f *fake) since(r *http.Request) (list []string) {
	since, _ := strconv.ParseFloat(r.URL.Query().Get("since"), 64)
	for _, m := range f.messages {
		if at(m) >= since {
			list = append(list, m)
		}
	}
	return list
}

// at returns the time of a message.
func at(m string) float64 {
	var of struct{ TS float64 }
	_ = json.Unmarshal([]byte(m), &of) // the messages of the tests
	return of.TS
}

func (f *fake) updates(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"messages":[%s],"dropped":0,"run_id":%q}`, strings.Join(f.since(r), ","), r.PathValue("run"))
}

// stream sends the messages behind Last-Event-ID, which is a number of messages, or else from the time since on.
func (f *fake) stream(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	after, err := strconv.Atoi(r.Header.Get("Last-Event-ID"))
	if err != nil {
		after = len(f.messages) - len(f.since(r))
	}
	f.mu.Unlock()
	f.follow(w, r, func() {
		for ; after < len(f.messages); after++ {
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", after+1, f.messages[after])
		}
	})
}

// said adds the message of a request to the thread, and begins its run.
func (f *fake) said(body []byte) {
	var given struct {
		Data struct {
			Message     string          `json:"message"`
			ID          string          `json:"client_message_id"`
			Attachments json.RawMessage `json:"attachments"`
		} `json:"data"`
		Content     string          `json:"content"`
		ID          string          `json:"client_message_id"`
		Attachments json.RawMessage `json:"attachments"`
	}
	if json.Unmarshal(body, &given) != nil {
		return
	}
	id, files := given.ID+given.Data.ID, string(given.Attachments)+string(given.Data.Attachments)
	if files == "" {
		files = "[]"
	}
	if f.unasked {
		f.write(given.Content, fmt.Sprintf(`,"sender_id":%q,"role":"user","trigger":"none","reason":"no mention","client_message_id":%q`, personID, id))
		f.changed.Broadcast()
		return
	}
	f.write(given.Content+given.Data.Message, fmt.Sprintf(`,"sender_id":%q,"role":"user","trigger":"run","client_message_id":%q,"run_id":%q,"attachments":%s`, personID, id, id, files))
	f.thread = append(f.thread, event{"run", fmt.Sprintf(`{"run_id":%q}`, id)})
	f.changed.Broadcast()
}

func (f *fake) take(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posts = append(f.posts, post{r.URL.Path, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), string(body)})
	w.Header().Set("Content-Type", "application/json")
	if f.refuse {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":{"code":"limit","message":"the workspace has a limit"}}`)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	switch {
	case strings.HasSuffix(r.URL.Path, "/attachments"):
		fmt.Fprintf(w, `{"url":"http://%s/storage/v1/object/sign/attachments/%d"}`, r.Host, len(f.posts))
	case strings.HasSuffix(r.URL.Path, "/signals"):
		f.said(body)
		fmt.Fprintf(w, `{"thread_id":%q,"message":{"id":"message-%d","trigger":"run"}}`, threadID, len(f.posts))
	case strings.HasSuffix(r.URL.Path, "/runs"):
		fmt.Fprintf(w, `{"threadId":%q,"runId":%q}`, threadID, runID)
	case strings.Contains(r.URL.Path, "/workstreams/"):
		_, _ = io.WriteString(w, `{}`)
	case strings.HasSuffix(r.URL.Path, "/messages"):
		f.said(body)
		fmt.Fprintf(w, `{"id":"message-%d","thread_id":%q}`, len(f.thread), threadID)
	default:
		fmt.Fprintf(w, `{"id":%q}`, threadID)
	}
}

// element returns a page with the element, which shows the run. attributes are further ones of the element.
func element(attributes string) string {
	return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark"><meta name="viewport" content="width=device-width"><title>page</title><link rel="icon" href="data:,">
<style>html,body{margin:0;height:100%}parley-conversation{height:100vh}</style><script type="module" src="/ui/conversation.js"></script>
<parley-conversation token="` + token + `" ` + attributes + `></parley-conversation>`
}

// shows is the attribute for the run.
const shows = `run="` + threadID + `/` + runID + `" title="Garden"`
