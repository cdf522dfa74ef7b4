package testapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
)

// Room is a channel, and Secret the signing secret.
const (
	Room   = "C0ROOM"
	Secret = "the signing secret"
)

// Noon is the time of the tests' fake Slack.
var Noon = time.Unix(1700000000, 0)

// Start starts a fake Slack and an adapter for it.
func Start(t *testing.T, options slacktest.Options) (*slacktest.Server, *slack.Adapter) {
	t.Helper()
	if options.Now == nil {
		options.Now = func() time.Time { return Noon }
	}
	server, err := slacktest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server, slack.New("acme", Config(server.URL()))
}

// Config returns the configuration of a hook.
func Config(apiURL string) slack.Config {
	c := slack.DefaultConfig()
	c.Mode, c.APIURL = slack.ModeHTTP, apiURL
	c.BotToken, c.SigningSecret = secret.New(slacktest.Token), secret.New(Secret)
	return c
}

// New returns an adapter for the Web API at an address.
func New(apiURL string) *slack.Adapter { return slack.New("acme", Config(apiURL)) }

// Post returns a post in the room.
func Post(key string) adapters.Post {
	return adapters.Post{Key: key, To: adapters.Address{Channel: Room}, Text: "hello", NotBefore: Noon}
}

// Metadata returns the metadata of a post with the key.
func Metadata(key string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"event_type":"parley_delivery","event_payload":{"key":%q}}`, key))
}

// Failure returns the error of a call that has failed.
func Failure(t *testing.T, err error) *adapters.SendError {
	t.Helper()
	var failed *adapters.SendError
	if !errors.As(err, &failed) {
		t.Fatalf("%v is not a SendError", err)
	}
	return failed
}
