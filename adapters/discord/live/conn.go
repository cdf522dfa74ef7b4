package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/ingest/event"
	"parley/ingest/wake"
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

// maxFrame bounds one frame, in bytes. The longest is the GUILD_CREATE of a large server.
const maxFrame = 64 << 20

// closeResumable is the code with which we close a connection whose session we resume. After
// 1000 or 1001, Discord forgets the session.
const closeResumable = 4000

// unnoticed bounds the time in which a dead connection may look alive.
const unnoticed = 2 * time.Minute

// intents are the events that the gateway sends. Of the privileged intents, only the content of
// messages is needed.
// https://docs.discord.com/developers/events/gateway#gateway-intents
const intents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
	discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions | discordgo.IntentMessageContent

// conn is one connection. One goroutine reads it, and one sends heartbeats.
type conn struct {
	*shard
	ws      *websocket.Conn
	writing sync.Mutex
	acked   atomic.Value // the time.Time of the last acknowledged heartbeat, by the monotonic clock

	beating sync.WaitGroup
	stop    context.CancelCauseFunc // ends the connection
	began   bool                    // a session was started or resumed
}

var (
	errReconnect = errors.New("discord asks for a new connection")
	errInvalid   = errors.New("discord refuses the session")
	errZombie    = errors.New("discord has not acknowledged a heartbeat")
)

// open connects to the gateway.
func (s *shard) open(ctx context.Context, address string) (*conn, error) {
	if address == "" {
		answer, err := s.askGateway(ctx)
		if err != nil {
			return nil, err
		}
		address = answer.URL
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "wss" && u.Scheme != "ws" {
		return nil, errors.New("the address of the gateway is not a websocket address")
	}
	if u.Path == "" || u.Path[len(u.Path)-1] != '/' {
		u.Path += "/"
	}
	u.RawQuery = "v=10&encoding=json"
	stop := func() bool { return true }
	dialer := websocket.Dialer{Proxy: websocket.DefaultDialer.Proxy, HandshakeTimeout: s.Limits.Open,
		NetDialContext: func(dialing context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(dialing, network, address)
			if err == nil { // the library's handshake does not notice the end of ctx
				stop = context.AfterFunc(ctx, func() { _ = c.Close() })
			}
			return c, err
		}}
	ws, response, err := dialer.DialContext(ctx, u.String(), nil)
	stop()
	switch {
	case err != nil && response != nil:
		return nil, fmt.Errorf("open the gateway: discord answered %s", response.Status)
	case err != nil:
		return nil, fmt.Errorf("open the gateway: %w", err)
	}
	ws.SetReadLimit(maxFrame)
	return &conn{shard: s, ws: ws}, nil
}

// serve starts or resumes a session, and reads until the connection ends.
func (c *conn) serve(ctx context.Context) (connected bool, err error) {
	running, stop := context.WithCancelCause(ctx)
	c.stop = stop
	c.beating.Go(func() {
		<-running.Done()
		c.close(ctx)
	})
	err = c.read(running)
	stop(err)
	c.beating.Wait()
	if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
		err = cause
	}
	return c.began, c.ended(ctx, err)
}

// close closes the connection. If the shard stops, Discord forgets the session and shows the
// bot as offline.
func (c *conn) close(ctx context.Context) {
	code := closeResumable
	if ctx.Err() != nil {
		code = websocket.CloseNormalClosure
	}
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(c.Limits.CloseWait))
	_ = c.ws.Close()
}

// ended forgets the session if it cannot be resumed, and returns the reason of the end.
func (c *conn) ended(ctx context.Context, err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		if errors.Is(err, errInvalid) {
			c.session = session{}
			c.pause(ctx, c.Limits.InvalidMin+wake.Jitter(c.Limits.InvalidMax-c.Limits.InvalidMin))
		}
		return err
	}
	if fatal := fatalClose(closed.Code); fatal != nil {
		return fatal
	}
	switch closed.Code {
	case 4003, 4007, 4009: // not authenticated, invalid sequence, timed out
		c.session = session{}
	}
	return fmt.Errorf("discord closed the gateway with %d", closed.Code)
}

// read handles frames until the connection ends. Until the session has begun, each frame must
// come soon; after that, the heartbeats bound the silence.
func (c *conn) read(ctx context.Context) error {
	begin := time.Now().Add(c.Limits.Open)
	for {
		if !c.began {
			_ = c.ws.SetReadDeadline(begin)
		}
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			return err
		}
		if err := c.handle(ctx, raw); err != nil {
			return err
		}
	}
}

// handle handles a frame. A dispatch goes to the accepts, also if it cannot be read.
func (c *conn) handle(ctx context.Context, raw []byte) error {
	var f discordgo.Event
	if err := json.Unmarshal(raw, &f); err != nil {
		return c.accepts.add(received{body: raw, at: c.client.Now()})
	}
	switch f.Operation {
	case opDispatch:
		return c.dispatch(f, raw)
	case opHello:
		return c.hello(ctx, f.RawData)
	case opAck:
		c.acked.Store(time.Now())
	case opHeartbeat:
		return c.heartbeat()
	case opReconnect:
		return errReconnect
	case opInvalid:
		if string(f.RawData) == "true" {
			return errReconnect
		}
		return errInvalid
	}
	return nil
}

// hello starts the heartbeats, and identifies or resumes.
func (c *conn) hello(ctx context.Context, raw json.RawMessage) error {
	var d struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if json.Unmarshal(raw, &d) != nil || d.Interval <= 0 {
		return errors.New("the gateway's hello has no heartbeat interval")
	}
	c.acked.Store(time.Now())
	c.beating.Go(func() { c.beat(ctx, time.Duration(d.Interval)*time.Millisecond) })
	if c.session.id != "" {
		return c.write(opResume, map[string]any{"token": c.settings.Token.Reveal(), "session_id": c.session.id, "seq": c.accepts.committed.Load()})
	}
	c.accepts.committed.Store(0) // no event of an earlier session waits
	return c.write(opIdentify, discordgo.Identify{
		Token: c.settings.Token.Reveal(), Intents: intents, Shard: &[2]int{c.id, c.count}, LargeThreshold: 50,
		Properties: discordgo.IdentifyProperties{OS: "linux", Browser: "parley", Device: "parley"},
	})
}

// beat sends heartbeats. It ends the connection if Discord does not acknowledge them. The first
// heartbeat is sent after a part of the interval, as Discord asks for.
// https://docs.discord.com/developers/events/gateway#heartbeat-interval
func (c *conn) beat(ctx context.Context, interval time.Duration) {
	silence := time.Duration(c.Limits.Silence * float64(interval))
	watch := time.NewTicker(max(interval/4, time.Millisecond))
	defer watch.Stop()
	next := time.NewTimer(wake.Jitter(interval))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-watch.C:
			if time.Since(c.acked.Load().(time.Time)) > silence {
				c.stop(errZombie)
				return
			}
		case <-next.C:
			if err := c.heartbeat(); err != nil {
				c.stop(err)
				return
			}
			next.Reset(interval)
		}
	}
}

// heartbeat sends the sequence of the last committed event; null if there is none.
func (c *conn) heartbeat() error {
	if seq := c.accepts.committed.Load(); seq > 0 {
		return c.write(opHeartbeat, seq)
	}
	return c.write(opHeartbeat, nil)
}

// write writes a frame. No error contains it, because it may contain the token.
func (c *conn) write(op int, d any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.ws.SetWriteDeadline(time.Now().Add(c.Limits.Write))
	if err := c.ws.WriteJSON(map[string]any{"op": op, "d": d}); err != nil {
		return fmt.Errorf("write to the gateway: %w", err)
	}
	return nil
}

// dispatch handles an event. It does not wait for the store.
func (c *conn) dispatch(f discordgo.Event, raw []byte) error {
	switch f.Type {
	case "READY":
		if err := c.ready(f.RawData); err != nil {
			return err
		}
	case "RESUMED":
		c.begin()
	}
	return c.accepts.add(received{body: raw, at: c.client.Now(), seq: f.Sequence, name: f.Type, data: f.RawData, session: c.session.id})
}

// ready notes a new session. Messages may have been missed before it.
func (c *conn) ready(raw json.RawMessage) error {
	var d struct {
		SessionID   string                `json:"session_id"`
		Address     string                `json:"resume_gateway_url"`
		User        discordgo.User        `json:"user"`
		Application discordgo.Application `json:"application"`
		Guilds      []discordgo.Guild     `json:"guilds"`
	}
	if err := json.Unmarshal(raw, &d); err != nil || d.SessionID == "" || d.User.ID == "" {
		return errors.New("the gateway's READY names no session or user")
	}
	c.begin()
	c.session = session{id: d.SessionID, address: d.Address}
	c.memory.Servers.Begin(c.shard.id, event.Self{UserID: d.User.ID, AppID: d.Application.ID}, d.Guilds)
	if c.cause != nil && time.Since(c.lost) >= c.Limits.DownAfter { // the shards of other nodes have moved the watermark on
		c.link.Missed("", c.lost.Add(-unnoticed))
	}
	c.link.Log.Info("the gateway session begins", "shard", c.id, "servers", len(d.Guilds))
	return nil
}

// begin notes that events arrive. From now on, the heartbeats bound the silence.
func (c *conn) begin() {
	c.began = true
	_ = c.ws.SetReadDeadline(time.Time{})
}

// fatalClose returns the error for a close code after which no retry helps, or nil.
// https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes
func fatalClose(code int) error {
	fatal, ok := map[int][2]string{
		4004: {"authentication failed", call.CheckToken},
		4010: {"invalid shard", correctShards},
		4011: {"sharding required", correctShards},
		4012: {"invalid API version", "set discord.api_url to the address of version 10 of the API"},
		4013: {"invalid intents", "set discord.api_url to the address of version 10 of the API, which knows the bot's intents"},
		4014: {"disallowed intents", call.AllowContent},
	}[code]
	if !ok {
		return nil
	}
	return &adapters.RefusedError{Err: fmt.Errorf("discord closed the gateway with %d: %s", code, fatal[0]), Hint: fatal[1]}
}

const correctShards = "set discord.shards to 0 or to a larger number, because the bot is in too many servers"
