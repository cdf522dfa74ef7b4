package slacktest

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"time"

	"parley/adapters/slack/slacktest/internal/content"
)

// The identity of the bot and its app on a Server, unless Options change it.
const (
	Team    = "T0TEAM"
	App     = "A0APP"
	BotUser = "U0BOT"
	BotID   = "B0BOT"
	Token   = "xoxb-slacktest"
	// AppToken opens sockets. No other method accepts it.
	AppToken = "xapp-slacktest"
)

// Options configure a Server. The zero value has one bot, with the identity in the constants
// of this package, and no faults.
type Options struct {
	// Address is the address to listen on; "127.0.0.1:0" if empty.
	Address string
	// Listener accepts the connections instead of a listener on Address, if it is not nil.
	Listener net.Listener
	// Token is the bot's token. AppToken is the app's token, which apps.connections.open
	// requires. The server accepts no others.
	Token, AppToken string
	// Team, BotUser and BotID are the identity in auth.test and in the bot's posts.
	Team, BotUser, BotID string
	// Enterprise is the id of the workspace's organization; none if empty.
	Enterprise string
	// Scopes are the bot's scopes; AllScopes if nil.
	Scopes []string
	// Now is the clock of timestamps; the system's if nil.
	Now func() time.Time
	// Plan returns the fault of a call for which Script has none; no fault if nil. It is
	// called concurrently. See Mix. The methods of an upload's and a download's HTTP requests
	// are "files.upload" and "files.download".
	Plan func(Call) Fault
	// OnCall receives every call as soon as it was read, before its fault.
	OnCall func(Call)
	// OnDownload receives every request for a file, before its response.
	OnDownload func(*http.Request)
	// OnPost receives every post of the API when it takes effect. OnChange receives each of
	// its changes: an update, an addition to a stream, the end of a stream, a deletion.
	OnPost, OnChange func(Post)

	// NoMarkdownBlocks makes the server refuse markdown blocks with invalid_blocks.
	NoMarkdownBlocks bool
	// NoBlocks are further types of blocks that the server refuses with invalid_blocks.
	NoBlocks []string
	// NoStreams is the code with which a Slack without streams refuses chat.startStream and
	// the other methods of streams, such as unknown_method or
	// method_not_supported_for_channel_type.
	NoStreams string
	// StreamAge and StreamLimit end a stream: it lives StreamAge after its start, and has at
	// most StreamLimit characters. The defaults are 5 minutes and 12,000 characters.
	StreamAge   time.Duration
	StreamLimit int

	// PostRate is the number of posts, changes and additions to streams per second that one
	// channel accepts. The server refuses more with 429. It is unlimited if 0.
	PostRate float64
	// Tiers limits each method to the calls per minute of its tier. Distributed limits the
	// reading of channels and threads to one call per minute with 15 messages, as Slack does
	// for an app that is sold outside its marketplace.
	// https://docs.slack.dev/apis/web-api/rate-limits
	Tiers, Distributed bool

	// Echo sends the app events about its own changes too, as Slack does.
	Echo bool
	// OnEvent receives these events as JSON of the inner event, in each channel in their
	// order. If it is nil, the server pushes them to the app.
	OnEvent func(event []byte)
	SocketOptions
}

// complete sets the defaults.
func (o *Options) complete() {
	setDefault(&o.Address, "127.0.0.1:0")
	setDefault(&o.Token, Token)
	setDefault(&o.AppToken, AppToken)
	setDefault(&o.Team, Team)
	setDefault(&o.BotUser, BotUser)
	setDefault(&o.BotID, BotID)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Scopes == nil {
		o.Scopes = AllScopes()
	}
	o.StreamAge = cmp.Or(o.StreamAge, streamAge)
	o.StreamLimit = cmp.Or(o.StreamLimit, content.MaxMarkdown)
	o.SocketOptions.Complete()
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// refuses reports whether the workspace refuses a type of blocks.
func (o Options) refuses(kind string) bool {
	return kind == "markdown" && o.NoMarkdownBlocks || slices.Contains(o.NoBlocks, kind)
}
