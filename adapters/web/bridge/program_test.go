package bridge_test

import (
	"bytes"
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

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/httpcall"
	"parley/adapters/web/bridge"
	"parley/config/secret"
)

// The secrets, which must never appear in an error or in the log.
const (
	token  = "canary-bridge-token-7f3a9c51d2"
	signer = "canary-bridge-secret-84b60a1c35"
)

// post is a post of Parley's as the program shows it.
type post struct {
	ID, Channel, Thread, Content string
	InReplyTo                    string `json:"in_reply_to"`
	Asker                        string
	Buttons                      []struct{ ID, Label string }
	File                         *struct {
		Name string
		Data []byte
	}
	DispatchType   string          `json:"dispatch_type"`
	DispatchConfig json.RawMessage `json:"dispatch_config"`
	Card           json.RawMessage
	removed        bool
}

// asked is a request of Parley's.
type asked struct {
	Type    string
	On      bool
	Message string
	Emoji   string
	post
}

// fault makes one request fail. met is closed when the request arrives.
type fault struct {
	failure adaptertest.Failure
	met     chan struct{}
}

// program is a fake of the program on a loopback port. It does each post once by its id.
type program struct {
	*httptest.Server
	t     *testing.T
	ended chan struct{}
	close func()

	mu      sync.Mutex
	hook    string
	posts   []*post
	asked   []asked
	working map[string]bool
	faults  map[string][]fault
	said    int
}

func newProgram(t *testing.T) *program {
	t.Helper()
	p := &program{t: t, ended: make(chan struct{}), working: map[string]bool{}, faults: map[string][]fault{}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	p.close = sync.OnceFunc(func() {
		close(p.ended)
		p.Server.Close()
	})
	t.Cleanup(p.close)
	return p
}

// serve checks the signature of a request, applies its fault, and does it.
func (p *program) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	want, _ := httpcall.Sign(signer, r.Header.Get("X-Parley-Timestamp"), bytes.NewReader(raw))
	var a asked
	if err := json.Unmarshal(raw, &a); err != nil || r.Header.Get("X-Parley-Signature") != want {
		p.t.Errorf("the request %s has no right signature, or the error %v", raw, err)
	}
	name := a.Type
	if name == "working" {
		name += strconv.FormatBool(a.On)
	}
	p.mu.Lock()
	p.asked = append(p.asked, a)
	var failure adaptertest.Failure
	if waiting := p.faults[name]; len(waiting) > 0 {
		failure, p.faults[name] = waiting[0].failure, waiting[1:]
		close(waiting[0].met)
	}
	p.mu.Unlock()
	switch failure {
	case adaptertest.BrokenLate, adaptertest.LostLate:
		p.do(httptest.NewRecorder(), a)
	}
	switch failure {
	case "":
		p.do(w, a)
	case adaptertest.Limited:
		w.Header().Set("Retry-After", strconv.Itoa(int(adaptertest.Wait.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
	case adaptertest.Denied:
		w.WriteHeader(http.StatusForbidden)
	case adaptertest.Broken, adaptertest.BrokenLate:
		w.WriteHeader(http.StatusBadGateway)
	case adaptertest.Lost, adaptertest.LostLate:
		panic(http.ErrAbortHandler) // closes the connection
	case adaptertest.Stuck:
		select {
		case <-r.Context().Done():
		case <-p.ended:
		}
	}
}

// do does a request. A post gets an id of the program's own, and comes back as the bot's message. The shared test uses a key again
// at another address.
func (p *program) do(w http.ResponseWriter, a asked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := a.Channel + a.Thread + a.InReplyTo + "~" + a.ID
	find := func(id string) *post {
		for _, known := range p.posts {
			if known.ID == id && !known.removed {
				return known
			}
		}
		return nil
	}
	known := find(a.ID)
	switch {
	case a.Type == "post":
		if find(own) == nil {
			made := a.post
			made.ID = own
			p.posts = append(p.posts, &made)
			p.deliver(own, p.message(own, a.Channel, a.Thread, a.Content, `{"sender_id":"bot","sender_display_name":"Bot","sender_type":"bot"}`))
		}
		fmt.Fprintf(w, `{"id":%q}`, own)
	case a.Type == "working":
		p.working[a.Channel+" "+a.Thread] = a.On
	case a.Type == "react":
	case known == nil:
		w.WriteHeader(http.StatusNotFound)
	case a.Type == "edit":
		known.Content, known.Buttons = a.Content, a.Buttons
	case a.Type == "remove":
		known.removed = true
	}
}

// place are the parts of an address.
type place struct {
	Thread    string `json:"thread"`
	InReplyTo string `json:"in_reply_to"`
}

func placeOf(to adapters.Address) (at place) {
	_ = json.Unmarshal([]byte(to.Place), &at) // an empty one is the channel
	return at
}

func (p *program) shown(to adapters.Address) (all []adaptertest.Shown) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.posts {
		if one.removed || one.Channel != to.Channel || (place{one.Thread, one.InReplyTo}) != placeOf(to) {
			continue
		}
		shown := adaptertest.Shown{ID: "bridge/" + one.ID, Text: one.Content}
		if one.File != nil {
			shown.Files = [][]byte{one.File.Data}
		}
		all = append(all, shown)
	}
	return all
}

// send posts a request to the hook, and returns the status and the body of the answer.
func (p *program) send(bearer, body string) (int, string) {
	request, err := http.NewRequest(http.MethodPost, p.hook, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(raw)
}

// deliver posts a request until it is accepted.
func (p *program) deliver(id, body string) adaptertest.Delivery {
	accepted := make(chan struct{})
	ctx := p.t.Context()
	go func() {
		for ctx.Err() == nil {
			if status, _ := p.send(token, body); status/100 == 2 {
				close(accepted)
				return
			}
		}
	}()
	return adaptertest.Delivery{ID: "bridge/" + id, Acknowledged: func(ctx context.Context) (bool, error) {
		select {
		case <-accepted:
			return true, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}}
}

const mara = `{"sender_id":"mara","sender_display_name":"Mara","sender_type":"human"}`

func (p *program) say(to adapters.Address, text string) adaptertest.Delivery {
	p.mu.Lock()
	p.said++
	id := fmt.Sprint("m", p.said)
	p.mu.Unlock()
	return p.deliver(id, p.message(id, to.Channel, placeOf(to).Thread, text, mara))
}

// message returns the request with a message.
func (p *program) message(id, channel, thread, text, by string) string {
	body := map[string]any{
		"id": id, "channel": map[string]string{"id": channel, "type": map[bool]string{true: "direct", false: "room"}[channel == "mara"]},
		"content": text, "metadata": json.RawMessage(by),
	}
	if thread != "" {
		body["thread"] = thread
	}
	raw, _ := json.Marshal(body)
	return string(raw)
}

func (p *program) change(id, members string) {
	p.deliver(id, `{"id":"`+strings.TrimPrefix(id, "bridge/")+`",`+members+`}`)
}

var calls = map[adaptertest.Call]string{
	adaptertest.Post: "post", adaptertest.Upload: "post", adaptertest.Edit: "edit", adaptertest.Remove: "remove",
	adaptertest.ShowWorking: "workingtrue", adaptertest.ClearWorking: "workingfalse",
}

func (p *program) fault(call adaptertest.Call, failure adaptertest.Failure) <-chan struct{} {
	name, ok := calls[call]
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := fault{failure, make(chan struct{})}
	p.faults[name] = append(p.faults[name], f)
	return f.met
}

// settings returns the settings of a program that can do everything.
func (p *program) settings() bridge.Config {
	c := bridge.DefaultConfig()
	c.Token, c.Deliver = secret.New(token), bridge.Deliver{URL: p.URL, Secret: secret.New(signer)}
	c.Format, c.Edits, c.Buttons, c.Working, c.Reactions = bridge.FormatMarkdown, true, true, true, true
	return c
}

// fake returns the program in the form that the conformance test uses.
func (p *program) fake(c bridge.Config) adaptertest.Fake {
	if err := c.Validate().Err(); err != nil {
		p.t.Fatal(err)
	}
	platform := bridge.Platform()
	return adaptertest.Fake{
		Adapter: platform.New("irc", &c), Platform: platform, Workspace: "irc", Transport: "http", Secrets: []string{token, signer},
		Room: adaptertest.Place{ID: "#garden"}, Direct: adaptertest.Place{ID: "mara"},
		Asker: adaptertest.Person{ID: "irc/mara", Name: "Mara"}, Other: adaptertest.Person{ID: "irc/ash", Name: "Ash"},
		Hook: func(url string) { p.hook = url }, Say: p.say, Shown: p.shown, Fault: p.fault, Close: p.close,
		Edit:   func(id, text string) { p.change(id, `"type":"edit","content":`+strconv.Quote(text)) },
		Delete: func(id string) { p.change(id, `"type":"delete"`) },
		React:  func(id string) { p.change(id, `"type":"reaction","emoji":"👍","metadata":`+mara) },
		Working: func(sign adapters.Sign) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.working[sign.To.Channel+" "+placeOf(sign.To).Thread]
		},
		Calls: func() int {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.asked)
		},
	}
}
