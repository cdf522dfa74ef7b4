package slacktest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

// clock is a clock that moves only by pass.
type clock struct{ since atomic.Int64 }

func (c *clock) now() time.Time                 { return time.Unix(1700000000, c.since.Load()) }
func (c *clock) pass(d time.Duration)           { c.since.Add(int64(d)) }
func (c *clock) options() (o slacktest.Options) { o.Now = c.now; return o }

// wantCode checks the code of Slack's refusal; "" means no error.
func wantCode(t *testing.T, doing string, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s: %q, want %q", doing, got, want)
	}
}

// under returns the option for a reply to a root.
func under(root string) slack.MsgOption { return slack.MsgOptionTS(root) }

// message returns the message at ts.
func message(t *testing.T, server *slacktest.Server, ts string) slacktest.Post {
	t.Helper()
	got, found := server.Message(channel, ts)
	if !found {
		t.Fatalf("there is no message at %s", ts)
	}
	return got
}

// refused calls a method with arguments of the form "a=b" that no client library would send,
// and returns the code of the refusal.
func refused(t *testing.T, server *slacktest.Server, method string, arguments ...string) string {
	t.Helper()
	form := url.Values{"token": {slacktest.Token}}
	for _, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		form.Set(name, value)
	}
	response, err := http.PostForm(server.URL()+method, form)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Error string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Error
}
