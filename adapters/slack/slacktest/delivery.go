package slacktest

import (
	"net/http"
	"net/url"
	"strings"

	"parley/adapters/slack/slacktest/internal/delivery"
	"parley/adapters/slack/slacktest/internal/life"
	"parley/adapters/slack/slacktest/internal/wire"
)

// The delivery of events and other envelopes to the app.
type (
	SocketOptions = delivery.SocketOptions // of the delivery, over sockets or to the hook
	Hook          = delivery.Hook          // the address to which the Events API delivers
	Delivery      = delivery.Delivery      // an envelope on its way to the app
	Result        = delivery.Result        // the end of a delivery
	State         = delivery.State         // its kind of end
	Ack           = delivery.Ack           // one acknowledgement from a socket
)

// The kinds of envelopes in Socket Mode.
const (
	EventsAPI     = delivery.EventsAPI
	SlashCommands = delivery.SlashCommands
	Interactive   = delivery.Interactive
)

// The results of an envelope's delivery.
const (
	Acked   = delivery.Acked
	Unacked = delivery.Unacked // sent as often as Slack does, without an acknowledgement
	Missed  = delivery.Missed  // there was no socket to send it to
)

// All selects all sockets in Disconnect, Cut and Mute.
const All = delivery.All

// linkPath is the path for opening sockets.
const linkPath = "/link/"

// The steps of opening a socket. Script accepts them like methods: the websocket's own
// request, and the hello frame that follows. If a fault of a hello has a Body, it replaces
// the hello.
const (
	LinkStep  = "link"
	HelloStep = "hello"
)

// openConnection responds to apps.connections.open with an address for one socket.
// https://docs.slack.dev/reference/methods/apps.connections.open
func (s *Server) openConnection(url.Values) []byte {
	address := strings.Replace(s.url, "http://", "ws://", 1) + linkPath + s.Hub.Ticket()
	return wire.Encode(map[string]any{"ok": true, "url": address})
}

// link opens a socket and serves it until it closes.
func (s *Server) link(w http.ResponseWriter, r *http.Request) {
	call := Call{Method: LinkStep, Form: r.URL.Query()}
	if s.options.OnCall != nil {
		s.options.OnCall(call)
	}
	fault := s.fault(call)
	if !s.life.Pass(life.After(fault.Latency), fault.Hold) {
		panic(http.ErrAbortHandler)
	}
	if fault.answers() {
		fault.write(w, nil)
		return
	}
	s.Hub.Open(w, r, func() (delivery.Hello, bool) {
		fault := s.fault(Call{Method: HelloStep})
		return delivery.Hello{Cut: fault.Cut, Body: fault.Body}, s.life.Pass(life.After(fault.Latency), fault.Hold)
	})
}
