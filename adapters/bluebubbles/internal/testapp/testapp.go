package testapp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/config/secret"
	"parley/ingest/event"
)

// The secrets of Config. They must never appear in an error or in the log, also not as a URL has them.
const (
	Canary        = "canary pass/word+%"
	CanaryQuery   = "canary+pass%2Fword%2B%25"
	CanaryPath    = "canary%20pass%2Fword+%25"
	CanaryWebhook = "canary-webhook-secret-0123"
)

// The people and chats of the tests.
const (
	Nora   = "+15555550142"
	Tomas  = "tomas@example.org"
	Direct = "iMessage;-;" + Nora
	Group  = "iMessage;+;chat640021977"
)

// Silent is a server that sends no webhook.
var Silent = bluebubblestest.Options{Webhooks: func(string) []time.Duration { return nil }}

// Config returns the configuration for the server at an address.
func Config(url string) bluebubbles.Config {
	c := bluebubbles.DefaultConfig()
	c.URL, c.Password, c.WebhookSecret, c.Timeout = url, secret.New(Canary), secret.New(CanaryWebhook), 5*time.Second
	return c
}

// Quickly makes the poller read all the time.
func Quickly(c *bluebubbles.Config) { c.Poll = 5 * time.Millisecond }

// Server is a fake server and an adapter for it.
type Server struct {
	*bluebubblestest.Server
	Adapter *bluebubbles.Adapter
	Calls   atomic.Int64 // except queries
	Queries atomic.Int64
	Revoked atomic.Bool // refuses the password
}

// Start starts a server that knows Nora, Tomas, Direct and Group.
func Start(t *testing.T, options bluebubblestest.Options) *Server {
	t.Helper()
	s := new(Server)
	given := options.OnCall
	options.Password, options.OnCall = Canary, func(c bluebubblestest.Call) {
		if c.Route == "POST message/query" { // a late webhook may read rows at any time
			s.Queries.Add(1)
		} else {
			s.Calls.Add(1)
		}
		if given != nil {
			given(c)
		}
	}
	options.Plan = func(bluebubblestest.Call) bluebubblestest.Fault {
		if s.Revoked.Load() {
			return bluebubblestest.Fault{Status: http.StatusUnauthorized}
		}
		return bluebubblestest.Fault{}
	}
	var err error
	if s.Server, err = bluebubblestest.Start(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.SetChat(bluebubblestest.Chat{GUID: Group, Name: "Allotment"})
	s.SetChat(bluebubblestest.Chat{GUID: Direct})
	s.AddContact(bluebubblestest.Contact{Address: Nora, Name: "Nora Lindqvist"})
	s.AddContact(bluebubblestest.Contact{Address: Tomas, Name: "Tomás Reyes"})
	s.Adapter = bluebubbles.New("home", Config(s.URL()))
	s.Adapter.UseState(adaptertest.NewState())
	return s
}

// Echo starts a server that refuses every call with the same words, and returns its address.
func Echo(t *testing.T, status int, words string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, words, status) }))
	t.Cleanup(server.Close)
	return server.URL
}

// Directory is the directory of a server without contacts.
type Directory struct{ adapters.Directory }

// Self returns the account of the server.
func (Directory) Self() event.Self { return event.Self{Address: bluebubblestest.Address} }

// User knows nobody.
func (Directory) User(context.Context, string) (adapters.User, bool) { return adapters.User{}, false }
