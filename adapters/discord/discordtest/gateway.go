package discordtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The opcodes of the gateway.
// https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway-gateway-opcodes
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

// frame is a frame of the gateway.
type frame struct {
	Op int             `json:"op"`
	T  *string         `json:"t"`
	S  *int64          `json:"s"`
	D  json.RawMessage `json:"d"`
}

// session is a session of one shard. It outlives its connection, so that it can be resumed.
type session struct {
	id            string
	shard, shards int
	intents       int
	seq           int64
	acked         int64 // the sequence of the client's last heartbeat or resume
	sent          [][]byte
	conn          *conn // nil without a connection
}

// conn is one connection.
type conn struct {
	ws     *websocket.Conn
	ended  chan struct{}
	mu     sync.Mutex
	queue  [][]byte
	wake   chan struct{}
	end    *websocket.CloseError // sent after the queue
	zombie bool                  // sends nothing any more

	session *session // nil until it is identified; guarded by the server's lock
}

func newConn(ws *websocket.Conn) *conn {
	return &conn{ws: ws, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// send queues a frame.
func (c *conn) send(raw []byte) {
	c.mu.Lock()
	if !c.zombie && c.end == nil {
		c.queue = append(c.queue, raw)
	}
	c.mu.Unlock()
	c.signal()
}

// close closes the connection after the queued frames.
func (c *conn) close(code int, reason string) {
	c.mu.Lock()
	if c.end == nil {
		c.end = &websocket.CloseError{Code: code, Text: reason}
	}
	c.mu.Unlock()
	c.signal()
}

func (c *conn) cut() { _ = c.ws.NetConn().Close() }

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes queued frames until the connection ends.
func (c *conn) write() {
	for {
		select {
		case <-c.ended:
			return
		case <-c.wake:
		}
		c.mu.Lock()
		queue, end := c.queue, c.end
		c.queue = nil
		c.mu.Unlock()
		for _, raw := range queue {
			if c.ws.WriteMessage(websocket.TextMessage, raw) != nil {
				return
			}
		}
		if end != nil {
			_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(end.Code, end.Text), time.Now().Add(time.Second))
			c.cut()
			return
		}
	}
}

func (s *Server) gatewayURL() string {
	return strings.Replace(s.url, "http://", "ws://", 1) + "/gateway"
}

// gatewayBot is GET /gateway/bot.
// https://docs.discord.com/developers/events/gateway#get-gateway-bot
func (s *Server) gatewayBot(request) any {
	return map[string]any{"url": s.gatewayURL(), "shards": s.options.Shards, "session_start_limit": map[string]any{
		"total": 1000, "remaining": max(s.options.Starts-s.identifies, 0), "reset_after": 14400000, "max_concurrency": s.options.Concurrency,
	}}
}

// openGateway serves one connection.
func (s *Server) openGateway(w http.ResponseWriter, r *http.Request) {
	call := Call{Route: Connect, Path: r.URL.RawQuery}
	f := s.fault(call)
	if s.options.OnCall != nil {
		s.options.OnCall(call)
	}
	if !s.pass(f) {
		panic(http.ErrAbortHandler)
	}
	if f.answers() {
		f.write(w)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has responded
	}
	c := newConn(ws)
	s.change(func() { s.conns[c] = true })
	s.running.Go(c.write)
	if f := s.fault(Call{Route: Hello}); f.Hold == nil {
		c.send(encode(frame{Op: opHello, D: encode(map[string]any{"heartbeat_interval": s.options.Heartbeat.Milliseconds()})}))
	}
	code := s.readAll(c)
	_ = ws.Close()
	close(c.ended)
	s.change(func() {
		delete(s.conns, c)
		if c.session == nil {
			return
		}
		if c.session.conn == c {
			c.session.conn = nil
		}
		if c.session.conn == nil && (code == websocket.CloseNormalClosure || code == websocket.CloseGoingAway) {
			delete(s.sessions, c.session.id)
		}
	})
}

// Hello is the gateway's first frame, for Script: with a Hold, the gateway never sends it.
const Hello = "gateway hello"

// readAll handles the client's frames until the connection ends. It returns the client's
// close code, or 0.
func (s *Server) readAll(c *conn) (code int) {
	for {
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			if closed, ok := err.(*websocket.CloseError); ok {
				return closed.Code
			}
			return 0
		}
		var f frame
		if json.Unmarshal(raw, &f) != nil {
			c.close(4002, "Error while decoding payload.")
			continue
		}
		s.change(func() { s.handle(c, f) })
	}
}

// handle handles a frame of the client. The caller holds the lock.
func (s *Server) handle(c *conn, f frame) {
	switch {
	case f.Op == opHeartbeat:
		var seq int64
		_ = json.Unmarshal(f.D, &seq)
		if c.session != nil && c.session.conn == c {
			c.session.acked = max(c.session.acked, seq)
		}
		c.send(encode(frame{Op: opAck, D: []byte("null")}))
	case f.Op == opIdentify && c.session == nil:
		s.identify(c, f.D)
	case f.Op == opResume && c.session == nil:
		s.resume(c, f.D)
	case f.Op == opIdentify || f.Op == opResume:
		c.close(4005, "Already authenticated.")
	case c.session == nil:
		c.close(4003, "Not authenticated.")
	}
}

// contentIntent is the privileged intent for the content of messages. The other privileged ones,
// for members and presences, are refused to the bot.
const contentIntent, privilegedIntents = 1 << 15, 1<<1 | 1<<8

// intentOf returns the intent with which an event is sent; 0 if it needs none.
// https://docs.discord.com/developers/events/gateway#list-of-intents
func intentOf(guild, name string) int {
	direct := 0 // the intents for direct messages are three bits higher
	if guild == "" {
		direct = 3
	}
	switch {
	case strings.HasPrefix(name, "MESSAGE_REACTION_"):
		return 1 << (10 + direct)
	case strings.HasPrefix(name, "MESSAGE_"):
		return 1 << (9 + direct)
	case strings.HasPrefix(name, "GUILD_"), strings.HasPrefix(name, "CHANNEL_"), strings.HasPrefix(name, "THREAD_"):
		return 1
	}
	return 0
}

// identify starts a session.
// https://docs.discord.com/developers/events/gateway#identifying
func (s *Server) identify(c *conn, raw json.RawMessage) {
	var d struct {
		Token   string `json:"token"`
		Intents int    `json:"intents"`
		Shard   []int  `json:"shard"`
	}
	_ = json.Unmarshal(raw, &d)
	if len(d.Shard) != 2 {
		d.Shard = []int{0, 1}
	}
	now := s.options.Now()
	s.identifies++
	s.started = append(s.started, now)
	recent := 0
	for _, at := range s.started {
		if s.options.IdentifyPer > 0 && now.Sub(at) < s.options.IdentifyPer {
			recent++
		}
	}
	switch {
	case s.revoked || d.Token != s.options.Token && d.Token != "Bot "+s.options.Token:
		c.close(4004, "Authentication failed.")
		return
	case d.Shard[0] < 0 || d.Shard[0] >= d.Shard[1]:
		c.close(4010, "Invalid shard.")
		return
	case d.Intents&^(1<<26-1) != 0:
		c.close(4013, "Invalid intent(s).")
		return
	case s.options.NoContent && d.Intents&contentIntent != 0, d.Intents&privilegedIntents != 0:
		c.close(4014, "Disallowed intent(s).")
		return
	case recent > s.options.Concurrency:
		c.send(encode(frame{Op: opInvalid, D: []byte("false")}))
		return
	}
	next := &session{id: "session" + s.newID(), shard: d.Shard[0], shards: d.Shard[1], intents: d.Intents, conn: c}
	s.sessions[next.id], c.session = next, next
	guilds := []any{}
	for id := range s.guilds {
		if shardOf(id, next.shards) == next.shard {
			guilds = append(guilds, map[string]any{"id": id, "unavailable": true})
		}
	}
	next.dispatch("READY", map[string]any{
		"v": 10, "user": s.users[BotUser].wire(), "guilds": guilds, "session_id": next.id, "resume_gateway_url": s.gatewayURL(),
		"shard": d.Shard, "application": map[string]any{"id": App, "flags": s.appFlags()},
	})
	for id, g := range s.guilds {
		if shardOf(id, next.shards) == next.shard && !g.Unavailable {
			next.dispatch("GUILD_CREATE", s.guildWire(g))
		}
	}
	s.options.OnSession(false)
}

// resume continues a session, or refuses it.
// https://docs.discord.com/developers/events/gateway#resuming
func (s *Server) resume(c *conn, raw json.RawMessage) {
	var d struct {
		Token string `json:"token"`
		ID    string `json:"session_id"`
		Seq   int64  `json:"seq"`
	}
	_ = json.Unmarshal(raw, &d)
	known := s.sessions[d.ID]
	switch {
	case s.revoked || d.Token != s.options.Token && d.Token != "Bot "+s.options.Token:
		c.close(4004, "Authentication failed.")
		return
	case known == nil:
		c.send(encode(frame{Op: opInvalid, D: []byte("false")}))
		return
	case d.Seq > known.seq:
		delete(s.sessions, d.ID)
		c.close(4007, "Invalid seq.")
		return
	}
	if old := known.conn; old != nil {
		old.close(4000, "resumed elsewhere")
	}
	s.resumes++
	known.conn, c.session = c, known
	known.acked = max(known.acked, d.Seq)
	for _, raw := range known.sent[d.Seq:] {
		c.send(raw)
	}
	known.dispatch("RESUMED", map[string]any{})
	s.options.OnSession(true)
}

// dispatch sends an event in the session, or stores it for a resume.
func (s *session) dispatch(name string, d any) int64 {
	return s.push(func(seq int64) []byte { return encode(frame{Op: opDispatch, T: &name, S: &seq, D: encode(d)}) })
}

func (s *session) push(raw func(seq int64) []byte) int64 {
	s.seq++
	s.sent = append(s.sent, raw(s.seq))
	if s.conn != nil {
		s.conn.send(s.sent[s.seq-1])
	}
	return s.seq
}
