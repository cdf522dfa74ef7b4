package call

import (
	"net/http"
	"sync/atomic"
	"time"

	"parley/adapters/httpcall"
	"parley/config/secret"
)

// The methods by which a BlueBubbles server sends messages.
const (
	MethodAuto        = "auto" // the private API if the server has it
	MethodAppleScript = "apple-script"
	MethodPrivateAPI  = "private-api"
)

// Client makes the calls of one server. It is safe for concurrent use.
type Client struct {
	Workspace string           // its name in envelopes and thread keys
	Method    string           // MethodAuto, MethodAppleScript or MethodPrivateAPI
	Timeout   time.Duration    // bounds one call
	Now       func() time.Time // the clock
	Chats     *Chats
	Meter     httpcall.Meter // of every call

	url                     string
	password, webhookSecret secret.Value
	poll                    time.Duration
	http                    *http.Client
	info                    atomic.Pointer[Info] // nil until the server has answered server/info
}

// Options are the settings of a Client.
type Options struct {
	URL           string // the server's address without /api/v1
	Password      secret.Value
	WebhookSecret secret.Value // is removed from errors
	Method        string
	Timeout       time.Duration
	Poll          time.Duration // the time between two polls
}

// New returns the client of a workspace. It opens no connection.
func New(workspace string, options Options) *Client {
	return &Client{
		Workspace: workspace, Method: options.Method, Timeout: options.Timeout, Now: time.Now, Chats: &Chats{guids: map[string]seenGUID{}},
		url: options.URL, password: options.Password, webhookSecret: options.WebhookSecret, poll: options.Poll,
		http: httpcall.NewClient(newTransport()),
	}
}
