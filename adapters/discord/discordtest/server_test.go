package discordtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"parley/adapters/discord/discordtest"
)

const guild, room, mara = "700000000000000001", "700000000000000002", "700000000000000003"

// start starts a fake with one guild, one channel and one person.
func start(t *testing.T, options discordtest.Options) *discordtest.Server {
	t.Helper()
	s, err := discordtest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.AddUser(discordtest.User{ID: mara, Username: "mara"})
	s.AddGuild(discordtest.Guild{ID: guild, Name: "garden", Nicks: map[string]string{mara: "Mara"}})
	s.SetChannel(discordtest.Channel{ID: room, Guild: guild, Name: "general"})
	return s
}

// call calls the API and returns the status, the header and the decoded object.
func call(t *testing.T, s *discordtest.Server, method, path, body string) (int, http.Header, map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bot "+discordtest.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, nil
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	var object map[string]any
	_ = json.Unmarshal(raw, &object)
	return response.StatusCode, response.Header, object
}

// TestACallTakesItsFault checks that a call that OnCall makes does not take the fault of the call
// that it reports.
func TestACallTakesItsFault(t *testing.T) {
	var s *discordtest.Server
	var next func()
	s = start(t, discordtest.Options{OnCall: func(discordtest.Call) {
		if f := next; f != nil {
			next = nil
			f()
		}
	}})
	var second int
	next = func() { second, _, _ = call(t, s, "GET", "/users/@me", "") }
	s.Script(discordtest.GetSelf, discordtest.Fault{Status: http.StatusServiceUnavailable})
	first, _, _ := call(t, s, "GET", "/users/@me", "")
	if first != http.StatusServiceUnavailable || second != http.StatusOK {
		t.Errorf("the first call gets %d, the second %d", first, second)
	}
}

// client is a connection to the gateway.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

func dial(t *testing.T, s *discordtest.Server) *client {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), strings.Replace(strings.TrimSuffix(s.URL(), "/api/v10"), "http", "ws", 1)+"/gateway/", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	_ = ws.SetReadDeadline(time.Now().Add(2 * time.Minute))
	c := &client{t, ws}
	if op, _, _, _ := c.next(); op != 10 {
		t.Fatalf("the first frame has op %d", op)
	}
	return c
}

func (c *client) send(frame string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next frame, or the close code of the connection.
func (c *client) next() (op int, name string, d map[string]any, code int) {
	_, raw, err := c.ws.ReadMessage()
	if closed, ok := err.(*websocket.CloseError); ok {
		return -1, "", nil, closed.Code
	}
	if err != nil {
		return -1, "", nil, -1
	}
	var f struct {
		Op int
		T  string
		D  json.RawMessage
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		c.t.Fatal(err)
	}
	_ = json.Unmarshal(f.D, &d)
	return f.Op, f.T, d, 0
}

// until reads frames up to the event with a name.
func (c *client) until(name string) map[string]any {
	c.t.Helper()
	for {
		op, got, d, code := c.next()
		if op < 0 {
			c.t.Fatalf("closed with %d before %s", code, name)
		}
		if got == name {
			return d
		}
	}
}

func (c *client) identify() (session string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"op":2,"d":{"token":%q,"intents":37377,"shard":[0,1]}}`, discordtest.Token))
	id, _ := c.until("READY")["session_id"].(string)
	c.until("GUILD_CREATE")
	return id
}

func resume(session string, seq int) string {
	return fmt.Sprintf(`{"op":6,"d":{"token":%q,"session_id":%q,"seq":%d}}`, discordtest.Token, session, seq)
}

func TestSessionResumes(t *testing.T) {
	for _, kind := range []discordtest.Kind{discordtest.Clean, discordtest.Cut, discordtest.Zombie, discordtest.Reconnect, discordtest.InvalidTrue} {
		s := start(t, discordtest.Options{})
		c := dial(t, s)
		session := c.identify()
		s.Drop(kind)
		s.Say(discordtest.Message{Channel: room, Author: mara, Content: "missed"})
		again := dial(t, s)
		again.send(resume(session, 2))
		if d := again.until("MESSAGE_CREATE"); d["content"] != "missed" || d["guild_id"] != guild {
			t.Errorf("%s: %v", kind, d)
		}
		again.until("RESUMED")
	}
}

func TestSessionIsForgotten(t *testing.T) {
	for _, kind := range []discordtest.Kind{discordtest.InvalidFalse, discordtest.Forget} {
		s := start(t, discordtest.Options{})
		session := dial(t, s).identify()
		s.Drop(kind)
		again := dial(t, s)
		again.send(resume(session, 2))
		if op, _, _, _ := again.next(); op != 9 {
			t.Errorf("%s: op %d", kind, op)
		}
	}
	s := start(t, discordtest.Options{})
	c := dial(t, s)
	session := c.identify()
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
	if _, _, _, code := c.next(); code == 0 {
		t.Error("the connection is open")
	}
	if err := s.AwaitShards(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	again := dial(t, s)
	again.send(resume(session, 2))
	if op, _, _, _ := again.next(); op != 9 {
		t.Errorf("after 1000: op %d", op)
	}
}

func TestGatewayCloses(t *testing.T) {
	for name, c := range map[string]struct {
		options discordtest.Options
		frame   string
		want    int
	}{
		"wrong token":       {frame: `{"op":2,"d":{"token":"no","intents":1,"shard":[0,1]}}`, want: 4004},
		"wrong shard":       {frame: `{"op":2,"d":{"token":"` + discordtest.Token + `","intents":1,"shard":[1,1]}}`, want: 4010},
		"wrong intent":      {frame: `{"op":2,"d":{"token":"` + discordtest.Token + `","intents":134217728,"shard":[0,1]}}`, want: 4013},
		"disallowed intent": {discordtest.Options{NoContent: true}, `{"op":2,"d":{"token":"` + discordtest.Token + `","intents":32768,"shard":[0,1]}}`, 4014},
		"no identify":       {frame: `{"op":3,"d":{}}`, want: 4003},
		"no json":           {frame: `{`, want: 4002},
	} {
		client := dial(t, start(t, c.options))
		client.send(c.frame)
		if _, _, _, code := client.next(); code != c.want {
			t.Errorf("%s: closed with %d, want %d", name, code, c.want)
		}
	}
}

func TestHeartbeatAcknowledgesEvents(t *testing.T) {
	s := start(t, discordtest.Options{})
	c := dial(t, s)
	c.identify()
	_, e := s.Say(discordtest.Message{Channel: room, Author: mara, Content: "hi"})
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if acked, err := e.Acked(soon); acked || err == nil {
		t.Error("the event is acknowledged before a heartbeat")
	}
	c.send(`{"op":1,"d":3}`)
	if acked, err := e.Acked(t.Context()); !acked || err != nil {
		t.Errorf("%v, %v", acked, err)
	}
}

func TestSessionLimit(t *testing.T) {
	s := start(t, discordtest.Options{IdentifyPer: time.Hour})
	dial(t, s).identify()
	c := dial(t, s)
	c.send(fmt.Sprintf(`{"op":2,"d":{"token":%q,"intents":1,"shard":[0,1]}}`, discordtest.Token))
	if op, _, _, _ := c.next(); op != 9 {
		t.Errorf("op %d", op)
	}
	if _, _, got := call(t, s, "GET", "/gateway/bot", ""); got["session_start_limit"].(map[string]any)["remaining"] != 998.0 {
		t.Errorf("%v", got)
	}
}

func TestPosts(t *testing.T) {
	s := start(t, discordtest.Options{PostLimit: 3, PostPer: time.Hour})
	path := "/channels/" + room + "/messages"
	_, _, first := call(t, s, "POST", path, `{"content":"hi","nonce":"k1","enforce_nonce":true}`)
	_, header, second := call(t, s, "POST", path, `{"content":"hi","nonce":"k1","enforce_nonce":true}`)
	if first["id"] != second["id"] || first["nonce"] != "k1" || header.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("%v, %v, %v", first, second, header)
	}
	if _, _, got := call(t, s, "GET", path+"/"+first["id"].(string), ""); got["nonce"] != nil || got["guild_id"] != nil {
		t.Errorf("a fetched message is %v", got)
	}
	if status, _, got := call(t, s, "POST", path, fmt.Sprintf(`{"content":%q}`, strings.Repeat("😀", 2001))); status != 400 || got["code"] != 50035.0 {
		t.Errorf("a long message: %d, %v", status, got)
	}
	if status, header, got := call(t, s, "POST", path, `{"content":"x"}`); status != 429 || header.Get("Retry-After") != "3600" || got["retry_after"] == 0 {
		t.Errorf("a fourth call: %d, %v, %v", status, header, got)
	}
	if status, _, _ := call(t, s, "PATCH", path+"/"+first["id"].(string), `{"content":"other"}`); status != 200 || s.Posts(room)[0].Content != "other" {
		t.Errorf("an edit: %d, %+v", status, s.Posts(room))
	}
	if status, _, _ := call(t, s, "DELETE", path+"/"+first["id"].(string), ``); status != 204 || len(s.Posts(room)) != 0 {
		t.Errorf("a deletion: %d, %+v", status, s.Posts(room))
	}
}

func TestFaults(t *testing.T) {
	s := start(t, discordtest.Options{})
	path := "/channels/" + room + "/messages"
	for _, c := range []struct {
		fault         discordtest.Fault
		status, posts int
	}{
		{discordtest.Fault{Status: 503}, 503, 0}, {discordtest.Fault{Status: 503, Effect: true}, 503, 1},
		{discordtest.Fault{Cut: true}, 0, 1}, {discordtest.Fault{Cut: true, Effect: true}, 0, 2},
		{discordtest.RateLimited(time.Second), 429, 2}, {discordtest.Fault{Status: 403, Code: 50013}, 403, 2}, {discordtest.Fault{}, 200, 3},
	} {
		s.Script(discordtest.Post, c.fault)
		status, _, _ := call(t, s, "POST", path, `{"content":"hi"}`)
		if posts := len(s.Posts(room)); status != c.status || posts != c.posts {
			t.Errorf("%+v: status %d and %d posts, want %d and %d", c.fault, status, posts, c.status, c.posts)
		}
	}
}

func TestHistoryPages(t *testing.T) {
	s := start(t, discordtest.Options{})
	var ids []string
	for n := range 5 {
		m, _ := s.Say(discordtest.Message{Channel: room, Author: mara, Content: fmt.Sprint(n)})
		ids = append(ids, m.ID)
	}
	for query, want := range map[string]string{"limit=2": "43", "limit=2&before=" + ids[3]: "21", "limit=2&after=" + ids[0]: "21", "limit=101": ""} {
		request, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/channels/"+room+"/messages?"+query, nil)
		request.Header.Set("Authorization", "Bot "+discordtest.Token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var page []struct{ Content string }
		_ = json.NewDecoder(response.Body).Decode(&page)
		_ = response.Body.Close()
		got := ""
		for _, m := range page {
			got += m.Content
		}
		if got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestInteractionIsAnsweredOnce(t *testing.T) {
	s := start(t, discordtest.Options{})
	i, _ := s.Command(room, mara, "hello")
	path := "/interactions/" + i.ID + "/" + i.Token + "/callback"
	if status, _, _ := call(t, s, "POST", path, `{"type":5}`); status != 204 {
		t.Errorf("status %d", status)
	}
	if status, _, got := call(t, s, "POST", path, `{"type":5}`); status != 400 || got["code"] != 40060.0 {
		t.Errorf("%d, %v", status, got)
	}
	answer := "/webhooks/" + discordtest.App + "/" + i.Token + "/messages/@original"
	if status, _, _ := call(t, s, "PATCH", answer, `{"content":"done"}`); status != 200 || s.Posts(room)[0].Content != "done" {
		t.Errorf("%d, %+v", status, s.Posts(room))
	}
}

func TestFilesNeedNoCredentials(t *testing.T) {
	s := start(t, discordtest.Options{})
	f := s.AddFile(room, discordtest.File{Name: "a.txt", MimeType: "text/plain", Content: []byte("content")})
	response, err := http.Get(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, _ := io.ReadAll(response.Body); !bytes.Equal(got, f.Content) {
		t.Errorf("%q", got)
	}
}
