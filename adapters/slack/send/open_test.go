package send_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

// TestOpenDirect checks the channel of direct messages, which is opened once, and the kinds of its failures.
func TestOpenDirect(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	server.AddUser(slacktest.User{ID: "U1"})
	for range 2 {
		if channel, err := adapter.OpenDirect(t.Context(), "U1"); channel != "DU1" || err != nil {
			t.Errorf("%q %v", channel, err)
		}
	}
	for _, c := range []struct {
		fault slacktest.Fault
		want  adapters.SendFailure
	}{
		{slacktest.Fault{Error: "user_not_visible"}, adapters.Permanent}, {slacktest.Fault{Error: "missing_scope"}, adapters.Permanent},
		{slacktest.Fault{Error: "token_revoked"}, adapters.NotSent}, {slacktest.Fault{Cut: true}, adapters.Unclear},
		{slacktest.Fault{Body: `{"ok":true}`}, adapters.Unclear}, {slacktest.Fault{Status: http.StatusTooManyRequests, RetryAfter: "7"}, adapters.RateLimited},
	} {
		server.Script("conversations.open", c.fault)
		_, err := adapter.OpenDirect(t.Context(), "U1")
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != c.want {
			t.Errorf("%+v: %v", c.fault, err)
		}
	}
}

// TestLink checks the links of posts at the top of a channel and in a thread.
func TestLink(t *testing.T) {
	_, adapter := testapp.Start(t, slacktest.Options{})
	for _, c := range []struct{ place, id, want string }{
		{"", "C1/1700000000.000100", "/archives/C1/p1700000000000100"},
		{"1700000000.000100", "C1/1700000000.000100", "/archives/C1/p1700000000000100"},
		{"1690000000.000100", "C1/1700000000.000100", "/archives/C1/p1700000000000100?cid=C1&thread_ts=1690000000.000100"},
		{"command-7", "C1/1700000000.000100", "/archives/C1/p1700000000000100"},
		{"", "C1/response-k1", ""},
	} {
		link := adapter.Link(t.Context(), adapters.Address{Channel: "C1", Place: c.place}, c.id)
		if !strings.HasPrefix(link, "http") && c.want != "" || !strings.HasSuffix(link, c.want) || (link == "") != (c.want == "") {
			t.Errorf("%+v: %q", c, link)
		}
	}
}
