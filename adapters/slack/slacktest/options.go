package slacktest

import (
	"cmp"
	"net/http"
	"time"
)

// Who we are on a Server whose Options leave it open.
const (
	Team    = "T0TEAM"
	App     = "A0APP"
	BotUser = "U0BOT"
	BotID   = "B0BOT"
	Token   = "xoxb-slacktest"
	// AppToken is what opens sockets; no other method takes it.
	AppToken = "xapp-slacktest"
)

// Options say what a Server is like. The zero value knows one bot, the
// constants of this package, and has no faults.
type Options struct {
	// Address is where it listens; "127.0.0.1:0" if empty.
	Address string
	// Token is the bot's, and AppToken the app's, which apps.connections.open asks
	// for. No others are taken.
	Token, AppToken string
	// Team, BotUser and BotID are what auth.test tells, and whose every post is.
	Team, BotUser, BotID string
	// Enterprise is the id of the organization that the workspace belongs to; none
	// if empty.
	Enterprise string
	// Scopes are what the bot was granted; AllScopes if nil.
	Scopes []string
	// Now is the clock that timestamps come from; the system's if nil.
	Now func() time.Time
	// Plan chooses the fault of a call that no Script provides for; none if nil.
	// It is called concurrently. See Mix. What goes to an upload's address or comes
	// from a download's has the methods "files.upload" and "files.download".
	Plan func(Call) Fault
	// OnCall sees every call as soon as it was read, before its fault.
	OnCall func(Call)
	// OnDownload sees every request for a file, before its answer.
	OnDownload func(*http.Request)
	// OnPost sees every post of the API when it takes effect, and OnChange each of
	// its changes: an update, what is appended to a stream, its end, a deletion.
	OnPost, OnChange func(Post)

	// NoMarkdownBlocks makes a Slack that does not know them: invalid_blocks.
	NoMarkdownBlocks bool
	// NoStreams is what chat.startStream and its like answer on a Slack that has no
	// streams, such as unknown_method or method_not_supported_for_channel_type.
	NoStreams string
	// StreamAge and StreamLimit are when a stream is closed: 5 minutes after its
	// start, and before it has more than 12,000 characters, if 0.
	StreamAge   time.Duration
	StreamLimit int

	// PostRate is how many posts, changes and pieces of streams a second one
	// channel takes; more are answered with 429. As many as come if 0.
	PostRate float64
	// Tiers holds each method to its tier's calls a minute, and Distributed reading
	// of channels and threads to one call a minute with 15 messages: what Slack
	// grants an app that is sold outside its marketplace.
	// https://docs.slack.dev/apis/web-api/rate-limits
	Tiers, Distributed bool

	// Echo tells the app of its own doings too, as Slack does.
	Echo bool
	// OnEvent takes the events of these, each the inner event's JSON, in the order in
	// which they happened in their channel; if nil they are pushed to the app.
	OnEvent func(event []byte)
	SocketOptions
}

// complete sets what was left open.
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
	o.StreamLimit = cmp.Or(o.StreamLimit, maxMarkdown)
	o.SocketOptions.complete()
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
