package adaptertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/config/secret"
	"parley/ingest/event"
)

// corkToken is the secret that must never appear in an error or in the log.
const corkToken = "canary-corkboard"

// corkPost is a message on the fake Corkboard.
type corkPost struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Channel string    `json:"channel"`
	Direct  bool      `json:"direct"`
	User    string    `json:"user"`
	ReplyTo string    `json:"reply_to"`
	Text    string    `json:"text"`
	SentAt  time.Time `json:"sent_at"`
	Key     string    `json:"-"`
	Files   [][]byte  `json:"-"`
}

// corkFault makes one request fail. arrived is closed when the request arrives.
type corkFault struct {
	failure adaptertest.Failure
	arrived chan struct{}
}

// corkServer is a fake Corkboard on a loopback port.
type corkServer struct {
	*httptest.Server
	ended chan struct{} // closed before the server closes
	close func()

	mu          sync.Mutex
	changed     chan struct{} // closed with the next change of the fields below
	events      []string      // as sent; the number of an event is its index plus 1
	read        int           // number of the last acknowledged event
	connections int           // open ones
	posts       []corkPost
	faults      map[string][]corkFault // by method and path
	calls       int                    // without polls
	revoked     bool
}

func newCorkServer(t *testing.T) *corkServer {
	t.Helper()
	s := &corkServer{ended: make(chan struct{}), changed: make(chan struct{}), faults: map[string][]corkFault{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, _ *http.Request) { writeCork(w, map[string]string{"id": "bot"}) })
	mux.HandleFunc("GET /events", s.next)
	mux.HandleFunc("POST /posts", s.post)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(mux, w, r) }))
	s.Config.ConnState = s.connected
	s.Start()
	s.close = sync.OnceFunc(func() {
		close(s.ended)
		s.Server.Close()
	})
	t.Cleanup(s.close)
	return s
}

func writeCork(w http.ResponseWriter, answer map[string]string) {
	_ = json.NewEncoder(w).Encode(answer)
}

// change applies a change and wakes every waiting request.
func (s *corkServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until done returns true. It returns false if ctx or the server ends first.
func (s *corkServer) await(ctx context.Context, done func() bool) bool {
	for {
		s.mu.Lock()
		is, changed := done(), s.changed
		s.mu.Unlock()
		if is {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-s.ended:
			return false
		}
	}
}

// connected counts the open connections.
func (s *corkServer) connected(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.change(func() { s.connections++ })
	case http.StateClosed:
		s.change(func() { s.connections-- })
	}
}

// serve checks the token and applies the next fault of the call.
func (s *corkServer) serve(mux http.Handler, w http.ResponseWriter, r *http.Request) {
	fault, refused := s.arrived(r)
	if refused {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch fault {
	case adaptertest.BrokenLate, adaptertest.LostLate:
		mux.ServeHTTP(httptest.NewRecorder(), r)
	}
	switch fault {
	case "":
		mux.ServeHTTP(w, r)
	case adaptertest.Limited:
		w.Header().Set("Retry-After", strconv.Itoa(int(adaptertest.Wait.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
	case adaptertest.Denied:
		w.WriteHeader(http.StatusForbidden)
	case adaptertest.Broken, adaptertest.BrokenLate:
		w.WriteHeader(http.StatusServiceUnavailable)
	case adaptertest.Lost, adaptertest.LostLate:
		panic(http.ErrAbortHandler) // closes the connection
	case adaptertest.Stuck:
		s.await(r.Context(), func() bool { return false })
	}
}

// arrived counts a request. It returns the request's fault, and whether its token is wrong.
func (s *corkServer) arrived(r *http.Request) (fault adaptertest.Failure, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != "/events" {
		s.calls++
	}
	call := r.Method + " " + r.URL.Path
	if waiting := s.faults[call]; len(waiting) > 0 {
		close(waiting[0].arrived)
		s.faults[call] = waiting[1:]
		return waiting[0].failure, false
	}
	return "", s.revoked || r.Header.Get("Authorization") != "Bearer "+corkToken
}

// next answers a poll with the event behind the last one that the caller has.
func (s *corkServer) next(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.FormValue("after"))
	s.change(func() { s.read = max(s.read, after) })
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	text := ""
	if !s.await(ctx, func() bool {
		if len(s.events) > after {
			text = s.events[after]
		}
		return text != ""
	}) {
		writeCork(w, map[string]string{})
		return
	}
	writeCork(w, map[string]string{"id": strconv.Itoa(after + 1), "event": text})
}

// post stores a post of ours once for each key. Tests use a key again at another address.
func (s *corkServer) post(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Channel string `json:"channel"`
		ReplyTo string `json:"reply_to"`
		Key     string `json:"key"`
		Text    string `json:"text"`
		Name    string `json:"file_name"`
		File    []byte `json:"file"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || body.Key == "" || len(body.Text) > 4*2000 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p := corkPost{Channel: body.Channel, User: "bot", ReplyTo: body.ReplyTo, Text: body.Text, Key: body.Channel + body.ReplyTo + body.Key}
	if body.Name != "" {
		p.Files = [][]byte{body.File}
	}
	id, _ := s.say(p)
	writeCork(w, map[string]string{"id": id})
}

// say stores a message and sends its event, unless a message has its key already. It returns
// the id of the message, and the number of the event.
func (s *corkServer) say(p corkPost) (id string, number int) {
	s.change(func() {
		for _, known := range s.posts {
			if p.Key != "" && known.Key == p.Key {
				id = known.ID
				return
			}
		}
		p.ID, p.Type, p.Direct = fmt.Sprint("m", len(s.events)+1), "message", p.Channel == "direct"
		p.SentAt = time.Now().UTC()
		s.posts = append(s.posts, p)
		encoded, _ := json.Marshal(p)
		s.events = append(s.events, string(encoded))
		id, number = p.ID, len(s.events)
	})
	return id, number
}

// push sends the text of an event and returns its number.
func (s *corkServer) push(text string) (number int) {
	s.change(func() {
		s.events = append(s.events, text)
		number = len(s.events)
	})
	return number
}

// delivery returns the delivery of an event. The end of the last connection ends it without
// an acknowledgement.
func (s *corkServer) delivery(id string, number int) adaptertest.Delivery {
	return adaptertest.Delivery{ID: id, Acknowledged: func(ctx context.Context) (acknowledged bool, err error) {
		ended := s.await(ctx, func() bool {
			acknowledged = s.read >= number
			return acknowledged || s.connections == 0
		})
		if !ended {
			err = context.Cause(ctx)
		}
		return acknowledged, err
	}}
}

// shown returns our posts at an address.
func (s *corkServer) shown(to adapters.Address) (all []adaptertest.Shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.posts {
		if p.User == "bot" && p.Channel == to.Channel && p.ReplyTo == to.Place {
			all = append(all, adaptertest.Shown{ID: p.ID, Text: p.Text, Files: p.Files})
		}
	}
	return all
}

var corkCalls = map[adaptertest.Call]string{
	adaptertest.Who: "GET /me", adaptertest.Post: "POST /posts", adaptertest.Upload: "POST /posts",
}

// fault makes the next call fail. A poll is no call that the test knows.
func (s *corkServer) fault(call adaptertest.Call, failure adaptertest.Failure) <-chan struct{} {
	name, ok := corkCalls[call]
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := corkFault{failure, make(chan struct{})}
	s.faults[name] = append(s.faults[name], f)
	return f.arrived
}

// corkFake returns a new fake Corkboard with its adapter.
func corkFake(t *testing.T) adaptertest.Fake {
	t.Helper()
	s := newCorkServer(t)
	platform := Platform()
	c := &Config{URL: s.URL, Token: secret.New(corkToken)}
	if err := c.Validate().Err(); err != nil {
		t.Fatal(err)
	}
	return adaptertest.Fake{
		Adapter: platform.New("acme", c), Platform: platform, Workspace: "acme", Transport: "poll",
		Self: event.Self{UserID: "bot"}, Secrets: []string{corkToken},
		Room: adaptertest.Place{ID: "garden"}, Direct: adaptertest.Place{ID: "direct"},
		Asker: adaptertest.Person{ID: "mara", Name: "mara"}, Other: adaptertest.Person{ID: "ash", Name: "ash"},
		Say: func(to adapters.Address, text string) adaptertest.Delivery {
			return s.delivery(s.say(corkPost{Channel: to.Channel, ReplyTo: to.Place, User: "mara", Text: text}))
		},
		Delete: func(id string) { s.push(fmt.Sprintf(`{"type":"delete","id":%q,"channel":"garden","user":"mara"}`, id)) },
		Raw:    func(payload []byte) adaptertest.Delivery { return s.delivery("", s.push(string(payload))) },
		Shown:  s.shown, Fault: s.fault, Close: s.close,
		Calls: func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.calls
		},
		Revoke: func() { s.change(func() { s.revoked = true }) },
	}
}
