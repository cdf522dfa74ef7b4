package slacktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

// maxWait bounds every wait of a test.
const maxWait = 2 * time.Minute

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

// frame is a frame from a socket.
type frame struct {
	Type        string          `json:"type"`
	Reason      string          `json:"reason"`
	Connections int             `json:"num_connections"`
	Info        json.RawMessage `json:"connection_info"`
	ID          string          `json:"envelope_id"`
	Payload     json.RawMessage `json:"payload"`
	Accepts     bool            `json:"accepts_response_payload"`
	Retry       int             `json:"retry_attempt"`
	RetryReason string          `json:"retry_reason"`
}

func address(t *testing.T, server *slacktest.Server) string {
	t.Helper()
	client := slack.New("", slack.OptionAppLevelToken(slacktest.AppToken), slack.OptionAPIURL(server.URL()))
	_, address, err := client.StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// plug opens a socket.
func plug(t *testing.T, server *slacktest.Server) *websocket.Conn {
	t.Helper()
	header := http.Header{"Origin": {"https://api.slack.com"}}
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), address(t, server), header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(maxWait))
	return conn
}

// greeted opens a socket and reads its hello.
func greeted(t *testing.T, server *slacktest.Server) *websocket.Conn {
	t.Helper()
	conn := plug(t, server)
	if hello := next(t, conn); hello.Type != "hello" {
		t.Fatalf("%+v", hello)
	}
	return conn
}

func next(t *testing.T, conn *websocket.Conn) (f frame) {
	t.Helper()
	if err := conn.ReadJSON(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

func acknowledge(t *testing.T, conn *websocket.Conn, f frame, payload string) {
	t.Helper()
	ack := `{"envelope_id":"` + f.ID + `"` + payload + `}`
	if err := conn.WriteMessage(websocket.TextMessage, []byte(ack)); err != nil {
		t.Fatal(err)
	}
}

func result(t *testing.T, d slacktest.Delivery) slacktest.Result {
	t.Helper()
	got, err := d.Wait(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTicketOpensOneSocket(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	ticket := address(t, server)
	for _, valid := range []bool{true, false} {
		conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), ticket, nil)
		if (err == nil) != valid {
			t.Errorf("valid ticket %v: %v", valid, err)
		}
		if conn != nil {
			defer conn.Close()
			if hello := next(t, conn); hello.Type != "hello" || hello.Connections != 1 || !strings.Contains(string(hello.Info), slacktest.App) {
				t.Errorf("%+v", hello)
			}
		}
	}
	if hello := next(t, plug(t, server)); hello.Connections != 2 {
		t.Errorf("the second hello is %+v", hello)
	}
}

func TestSocketsNeedAppToken(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	for token, code := range map[string]string{"xapp-wrong": "invalid_auth", "": "not_authed", slacktest.Token: "not_allowed_token_type"} {
		client := slack.New("", slack.OptionAppLevelToken(token), slack.OptionAPIURL(server.URL()))
		if _, _, err := client.StartSocketModeContext(t.Context()); err == nil || err.Error() != code {
			t.Errorf("%q: %v, want %s", token, err, code)
		}
	}
}

func TestEleventhSocketIsRefused(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	for range 10 {
		greeted(t, server)
	}
	eleventh := plug(t, server)
	if f := next(t, eleventh); f.Type != "disconnect" || f.Reason != "too_many_websockets" {
		t.Errorf("%+v", f)
	}
	if _, _, err := eleventh.ReadMessage(); err == nil {
		t.Error("the eleventh socket is still open")
	}
	if open, most := server.Sockets(); open != 10 || most != 10 {
		t.Errorf("%d sockets are open, and at most %d were", open, most)
	}
}

func TestAcknowledgements(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	conn := greeted(t, server)
	event := server.Push([]byte(`{"type":"message"}`))
	command := server.PushRaw(slacktest.SlashCommands, []byte(`{"command":"/ask"}`))

	first := next(t, conn)
	if first.Type != "events_api" || first.ID != event.EnvelopeID() || first.Accepts || first.Retry != 0 || !strings.Contains(string(first.Payload), `"event":{"type":"message"}`) {
		t.Errorf("%+v", first)
	}
	second := next(t, conn)
	if second.Type != "slash_commands" || !second.Accepts || string(second.Payload) != `{"command":"/ask"}` {
		t.Errorf("%+v", second)
	}
	acknowledge(t, conn, second, `,"payload":{"text":"done"}`)
	acknowledge(t, conn, first, "")
	if got := result(t, command); got.State != slacktest.Acked || string(got.Answer) != `{"text":"done"}` {
		t.Errorf("%+v", got)
	}
	if got := result(t, event); got.State != slacktest.Acked || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
	if acks, err := server.AwaitAcks(bounded(t), 2); err != nil || acks[0].EnvelopeID != second.ID || acks[1].Socket != 1 {
		t.Errorf("%+v, %v", acks, err)
	}
}

// quick returns options with short waits.
func quick() slacktest.Options {
	return slacktest.Options{SocketOptions: slacktest.SocketOptions{
		AckWithin: 5 * time.Millisecond, Repeat: []time.Duration{0, time.Millisecond, time.Millisecond}, Grace: 20 * time.Millisecond,
	}}
}

func TestUnacknowledgedEventIsRepeated(t *testing.T) {
	server, _ := start(t, quick())
	a, b := greeted(t, server), greeted(t, server)
	d := server.Push([]byte(`{"type":"message"}`))
	if got := result(t, d); got.State != slacktest.Unacked || got.Attempts != 4 || server.Unacked() != 1 || server.UnderWay() != 0 {
		t.Errorf("%+v, %d unacknowledged, %d under way", got, server.Unacked(), server.UnderWay())
	}
	var retries []int
	for _, conn := range []*websocket.Conn{a, b} { // they take turns
		for range 2 {
			f := next(t, conn)
			retries = append(retries, f.Retry)
			if f.ID != d.EnvelopeID() || (f.RetryReason == "timeout") != (f.Retry > 0) {
				t.Errorf("%+v", f)
			}
		}
	}
	if s, want := retries, [][]int{{0, 2, 1, 3}, {1, 3, 0, 2}}; !cmp.Equal(s, want[0]) && !cmp.Equal(s, want[1]) {
		t.Errorf("the sockets received the attempts %v", s)
	}
	if command := result(t, server.PushRaw(slacktest.SlashCommands, []byte(`{}`))); command.State != slacktest.Unacked || command.Attempts != 1 {
		t.Errorf("the result of the command is %+v", command)
	}
}

func TestEnvelopeWithoutSocket(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	if got := result(t, server.Push([]byte(`{}`))); got.State != slacktest.Missed || server.Missed() != 1 {
		t.Errorf("%+v, %d missed", got, server.Missed())
	}
	queue, _ := start(t, slacktest.Options{SocketOptions: slacktest.SocketOptions{QueueFor: maxWait}})
	d := queue.Push([]byte(`{}`))
	conn := greeted(t, queue)
	acknowledge(t, conn, next(t, conn), "")
	if got := result(t, d); got.State != slacktest.Acked {
		t.Errorf("%+v", got)
	}
}

func TestDisconnect(t *testing.T) {
	server, _ := start(t, quick())
	a, b := greeted(t, server), greeted(t, server)
	if n := server.Disconnect("warning", 1) + server.Disconnect("refresh_requested", slacktest.All); n != 2 {
		t.Errorf("%d sockets were asked to disconnect", n)
	}
	for conn, reason := range map[*websocket.Conn]string{a: "warning", b: "refresh_requested"} {
		if f := next(t, conn); f.Type != "disconnect" || f.Reason != reason {
			t.Errorf("%+v", f)
		}
		if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if err := server.AwaitSockets(bounded(t), 0, 2); err != nil {
		t.Error(err)
	}
}

func TestCut(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	conn, other := greeted(t, server), greeted(t, server)
	if n := server.Cut(1); n != 1 {
		t.Errorf("%d sockets were cut", n)
	}
	if _, _, err := conn.ReadMessage(); err == nil || websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the cut socket returned %v", err)
	}
	if err := server.AwaitSockets(bounded(t), 1, 2); err != nil {
		t.Error(err)
	}
	server.SendFrame([]byte(`{"type":"other"}`))
	if got := next(t, other); got.Type != "other" {
		t.Errorf("%+v", got)
	}
}

func TestMute(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	conn := greeted(t, server)
	conn.SetPongHandler(func(string) error { return errors.New("the muted socket sent a pong") })
	server.Mute(1)
	server.Push([]byte(`{}`))
	_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(maxWait))
	if open, _ := server.Sockets(); open != 1 {
		t.Errorf("%d sockets are open", open)
	}
	// The server closes the connection after it has handled the ping and everything before it.
	if err := conn.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseAbnormalClosure) {
		t.Errorf("the muted socket sent %q: %v", got, err)
	}
	if err := server.AwaitSockets(bounded(t), 0, 1); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfOpening(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	server.Script(slacktest.LinkStep, slacktest.Fault{Status: http.StatusBadGateway})
	if _, response, err := websocket.DefaultDialer.DialContext(t.Context(), address(t, server), nil); err == nil || response.StatusCode != http.StatusBadGateway {
		t.Errorf("%v", err)
	}
	server.Script(slacktest.HelloStep, slacktest.Fault{Body: `{"type":"other"}`}, slacktest.Fault{Cut: true})
	if got := next(t, plug(t, server)); got.Type != "other" {
		t.Errorf("%+v", got)
	}
	if _, _, err := plug(t, server).ReadMessage(); err == nil {
		t.Error("the server sent a hello in spite of the cut")
	}
}

// patient returns options with a long wait for an answer and no pause before a repetition.
func patient() slacktest.Options {
	return slacktest.Options{SocketOptions: slacktest.SocketOptions{AckWithin: maxWait, Repeat: []time.Duration{0, 0, 0}}}
}

func TestHookRepetitions(t *testing.T) {
	server, _ := start(t, patient())
	var seen []string
	answers := []int{500, 503, 200}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("X-Slack-Retry-Num")+" "+r.Header.Get("X-Slack-Retry-Reason")+" "+r.Header.Get("Content-Type"))
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	defer app.Close()
	server.SetHook(slacktest.Hook{URL: app.URL, Secret: "s"})
	if got := result(t, server.Push([]byte(`{}`))); got.State != slacktest.Acked || got.Attempts != 3 {
		t.Errorf("%+v", got)
	}
	answers = []int{500}
	if got := result(t, server.PushRaw(slacktest.SlashCommands, []byte(`{"command":"/ask","text":"x"}`))); got.State != slacktest.Unacked || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
	want := []string{"  application/json", "1 http_error application/json", "2 http_error application/json", "  application/x-www-form-urlencoded"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestHookRefusesRepetition(t *testing.T) {
	server, _ := start(t, patient())
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Slack-No-Retry", "1")
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer app.Close()
	server.SetHook(slacktest.Hook{URL: app.URL})
	if got := result(t, server.Push([]byte(`{}`))); got.State != slacktest.Unacked || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSay(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	conn := greeted(t, server)
	first, deliveries := server.Say(slacktest.Message{Channel: channel, User: "U1", Text: "<@U0BOT> hi"})
	if len(deliveries) != 2 || first.TS != "1700000000.000000" {
		t.Errorf("%+v, %d deliveries", first, len(deliveries))
	}
	for _, kind := range []string{`"type":"message"`, `"type":"app_mention"`} {
		if f := next(t, conn); !strings.Contains(string(f.Payload), kind) || !strings.Contains(string(f.Payload), first.TS) {
			t.Errorf("%s", f.Payload)
		}
	}
	if _, deliveries := server.Say(slacktest.Message{Channel: channel, User: "U1", Text: "earlier", TS: "1600000000.000100"}); len(deliveries) != 1 {
		t.Errorf("%d deliveries", len(deliveries))
	}
	page, err := client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: channel})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"<@U0BOT> hi", "earlier"}, texts(page.Messages)); diff != "" {
		t.Error(diff)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	server, _ := start(t, slacktest.Options{SocketOptions: slacktest.SocketOptions{QueueFor: time.Hour}})
	waiting := server.Push([]byte(`{}`))
	conn := greeted(t, server)
	next(t, conn) // left without an acknowledgement
	server.Script(slacktest.HelloStep, slacktest.Fault{Hold: make(chan struct{})})
	plug(t, server)
	server.Disconnect("warning", 1)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-waiting.Done():
		t.Error("the close ended a delivery that was under way")
	default:
	}
	if got := server.Push([]byte(`{}`)); got.EnvelopeID() == "" {
		t.Error("Push after Close returns no delivery")
	}
}
