package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// gateway is a platform that allows one session per workspace and refuses a second one. It
// sends its frames, in the form of Discord's gateway, over the session. The next session gets
// the frames that are not acknowledged.
type gateway struct {
	*httptest.Server

	mu         sync.Mutex
	frames     [][]byte // by sequence, from 1
	acked      int
	session    int // the open session; 0 for none
	sessions   []string
	violations []string
	posts      []gatewayPost
	changed    chan struct{} // closed at the next change
}

// gatewayPost is a post of a node on the platform.
type gatewayPost struct{ Node, Key, Channel, Text string }

// frame is a message on a session.
type frame struct {
	Seq  int             `json:"seq"`
	Body json.RawMessage `json:"body"`
}

const guildBot = "1127004411840000100"

func newGateway(t *testing.T) *gateway {
	g := &gateway{changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /session", g.serve)
	mux.HandleFunc("POST /session/{id}/end", g.end)
	mux.HandleFunc("POST /session/{id}/ack/{seq}", g.ack)
	mux.HandleFunc("POST /posts", g.post)
	mux.HandleFunc("GET /posts/{key}", g.find)
	g.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

// change changes the gateway and wakes the waiting goroutines.
func (g *gateway) change(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
	close(g.changed)
	g.changed = make(chan struct{})
}

// say sends a message to the bot in one of a few channels.
func (g *gateway) say(text string) {
	g.change(func() {
		id := 1127004411850000000 + len(g.frames)
		g.frames = append(g.frames, fmt.Appendf(nil, `{"op":0,"t":"MESSAGE_CREATE","s":1,"d":{"id":"%d","channel_id":"112700441186000000%d",
			"guild_id":"1127004411840000001","type":0,"content":"<@%s> %s","timestamp":%q,"edited_timestamp":null,"mention_everyone":false,
			"author":{"id":"1127004411840000777","username":"mara","global_name":"Mara"},"mentions":[{"id":"%s","username":"parley"}],
			"mention_roles":[],"attachments":[],"embeds":[]}}`,
			id, len(g.frames)%5, guildBot, text, time.Now().Format(time.RFC3339Nano), guildBot))
	})
}

func (g *gateway) serve(w http.ResponseWriter, r *http.Request) {
	node := r.FormValue("node")
	opened := 0
	g.change(func() {
		if g.session != 0 {
			g.violations = append(g.violations, node+" during "+g.sessions[len(g.sessions)-1])
			return
		}
		g.sessions = append(g.sessions, node)
		g.session, opened = len(g.sessions), len(g.sessions)
	})
	if opened == 0 {
		http.Error(w, "another session is open", http.StatusConflict)
		return
	}
	defer g.close(opened)
	w.Header().Set("Session", strconv.Itoa(opened))
	for next := 0; ; {
		g.mu.Lock()
		next = max(next, g.acked)
		frames, open, changed := g.frames[next:], g.session == opened, g.changed
		g.mu.Unlock()
		if !open {
			return
		}
		for _, body := range frames {
			next++
			var line bytes.Buffer
			_ = json.NewEncoder(&line).Encode(frame{next, body})
			if _, err := w.Write(line.Bytes()); err != nil {
				return
			}
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (g *gateway) close(session int) {
	g.change(func() {
		if g.session == session {
			g.session = 0
		}
	})
}

func (g *gateway) end(_ http.ResponseWriter, r *http.Request) {
	session, _ := strconv.Atoi(r.PathValue("id"))
	g.close(session)
}

func (g *gateway) ack(_ http.ResponseWriter, r *http.Request) {
	seq, _ := strconv.Atoi(r.PathValue("seq"))
	g.change(func() { g.acked = max(g.acked, seq) })
}

func (g *gateway) post(w http.ResponseWriter, r *http.Request) {
	var p gatewayPost
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.change(func() { g.posts = append(g.posts, p) })
	_, _ = w.Write([]byte("post-" + p.Key))
}

func (g *gateway) find(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.ContainsFunc(g.posts, func(p gatewayPost) bool { return p.Key == r.PathValue("key") }) {
		http.NotFound(w, r)
	}
}

// await waits until a condition holds. It returns false if ctx ends first.
func (g *gateway) await(ctx context.Context, holds func() bool) bool {
	for {
		g.mu.Lock()
		done, changed := holds(), g.changed
		g.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// gatewayAdapter is the adapter of the gateway.
type gatewayAdapter struct {
	payload.Normalizer
	url, workspace, node string
}

var (
	_ adapters.Connector = (*gatewayAdapter)(nil)
	_ adapters.Sender    = (*gatewayAdapter)(nil)
	_ adapters.Finder    = (*gatewayAdapter)(nil)
)

// platforms returns a node's platforms, with the gateway instead of Discord.
func (g *gateway) platforms(node string) []adapters.Platform {
	platform := discord.Platform()
	platform.New = func(workspace string, _ adapters.Config) adapters.Adapter {
		return &gatewayAdapter{url: g.URL, workspace: workspace, node: node}
	}
	return []adapters.Platform{platform}
}

func (*gatewayAdapter) Limits() adapters.Limits { return adapters.Limits{Timeout: time.Second} }

func (g *gatewayAdapter) Connections() []adapters.Connection {
	return []adapters.Connection{{Exclusive: true, Run: g.Run}}
}

// Run opens a session. When ctx ends, it ends the session properly.
func (g *gatewayAdapter) Run(ctx context.Context, inbox adapters.Inbox, link adapters.Link) (err error) {
	response, err := g.call(ctx, http.MethodGet, "/session?node="+g.node, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	session := "/session/" + response.Header.Get("Session")
	defer func() {
		ended, last := g.call(context.WithoutCancel(ctx), http.MethodPost, session+"/end", nil)
		if err = errors.Join(err, last); last == nil {
			_ = ended.Body.Close()
		}
	}()
	link.Up(event.Self{UserID: guildBot})
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		var f frame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return err
		}
		if err := g.take(ctx, inbox, f.Body); err != nil {
			return err
		}
		acked, err := g.call(ctx, http.MethodPost, session+"/ack/"+strconv.Itoa(f.Seq), nil)
		if err != nil {
			return err
		}
		_ = acked.Body.Close()
	}
	return lines.Err()
}

// take accepts a frame, and tries again while the store is busy.
func (g *gatewayAdapter) take(ctx context.Context, inbox adapters.Inbox, body []byte) error {
	for {
		_, err := inbox.Accept(ctx, event.Envelope{
			Workspace: g.workspace, Platform: event.Discord, Transport: "gateway", ReceivedAt: time.Now(), Body: body,
		})
		if !errors.Is(err, adapters.ErrBusy) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// call makes a request that must succeed.
func (g *gatewayAdapter) call(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, g.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return response, errors.New(response.Status)
	}
	return response, err
}

func (*gatewayAdapter) Format(text string, _ []string) []string { return []string{text} }

func (*gatewayAdapter) Address(thread event.ThreadKey, _ string) (adapters.Address, error) {
	return adapters.Address{Channel: string(thread)}, nil
}

func (g *gatewayAdapter) Send(ctx context.Context, p adapters.Post) (string, error) {
	body, err := json.Marshal(gatewayPost{g.node, p.Key, p.To.Channel, p.Text})
	if err != nil {
		return "", &adapters.SendError{Failure: adapters.Permanent, Err: err}
	}
	response, err := g.call(ctx, http.MethodPost, "/posts", body)
	if err != nil {
		return "", &adapters.SendError{Failure: adapters.Unclear, Err: err}
	}
	return "post-" + p.Key, response.Body.Close()
}

func (g *gatewayAdapter) Find(ctx context.Context, p adapters.Post) (string, bool, error) {
	response, err := g.call(ctx, http.MethodGet, "/posts/"+p.Key, nil)
	if response != nil && response.StatusCode == http.StatusNotFound {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return "post-" + p.Key, true, response.Body.Close()
}
