package call_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/ingest/event"
)

func TestHeadersSetThePace(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Prepare(t, discordtest.Options{OnCall: calls.Note, PostLimit: 2, PostPer: time.Minute}, nil)
	for n := range 2 {
		l.Send(l.Post(fmt.Sprint("k", n), testapp.Room, "", "hi"))
	}
	_, err := l.Adapter.Send(t.Context(), l.Post("k3", testapp.Room, "", "hi"))
	failure, ok := err.(*adapters.SendError)
	if !ok || failure.Failure != adapters.RateLimited || failure.Scope != adapters.ScopeChannel || failure.RetryAfter <= 0 || failure.RetryAfter > time.Minute {
		t.Errorf("the third call: %v", err)
	}
	if n := len(calls.Of(discordtest.Post)); n != 2 {
		t.Errorf("%d calls reached Discord, want 2", n)
	}
	l.Send(l.Post("k4", testapp.Direct, "", "hi")) // another channel has its own limit
}

func TestGlobalLimitStopsEverything(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.Script(discordtest.Post, discordtest.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute, Scope: "global"})
	for range 2 {
		_, err := l.Adapter.Send(t.Context(), l.Post("k1", testapp.Room, "", "hi"))
		if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.RateLimited {
			t.Errorf("got %v", err)
		}
	}
	if _, err := l.Adapter.LookupUser(t.Context(), testapp.Mara); err == nil {
		t.Error("another call was made")
	}
}

// TestAProxysAnswerIsNoRefusal checks that a post and a read that a proxy before Discord refuses are
// tried again, unless the post is too large for the proxy. A success that is not Discord's is unclear.
func TestAProxysAnswerIsNoRefusal(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	for status, want := range map[int]adapters.SendFailure{
		http.StatusForbidden: adapters.NotSent, http.StatusUnauthorized: adapters.NotSent, http.StatusRequestEntityTooLarge: adapters.Permanent,
		http.StatusNonAuthoritativeInfo: adapters.Unclear,
	} {
		l.Script(discordtest.Post, discordtest.Fault{Status: status})
		_, err := l.Adapter.Send(t.Context(), l.Post("k1", testapp.Room, "", "hi"))
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != want {
			t.Errorf("%d: %v", status, err)
		}
	}
	l.Script(discordtest.Read, discordtest.Fault{Status: http.StatusForbidden})
	_, err := l.Adapter.ReadChannel(t.Context(), adapters.Reading{Gap: event.Gap{Channel: testapp.Room, Until: time.Now()}, Messages: 10})
	if _, refused := errors.AsType[*adapters.RefusedError](err); err == nil || refused {
		t.Errorf("the read returns %v", err)
	}
}

// TestGlobalLimitLeavesCommands checks that a command gets its response during a limit of all calls,
// which Discord does not apply to responses.
func TestGlobalLimitLeavesCommands(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	l.Script(discordtest.GetUser, discordtest.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute, Scope: "global"})
	if _, err := l.Adapter.LookupUser(t.Context(), testapp.Mara); err == nil {
		t.Fatal("there is no limit")
	}
	i, _ := l.Command(testapp.Room, testapp.Mara, "hello")
	if asked := l.Callback(i); asked.Type != 5 {
		t.Errorf("the response is %+v", asked)
	}
	if id := l.Send(l.Post("k1", testapp.Room, "command-"+i.ID, "the answer")); id != l.Asked(i.Token).Answer {
		t.Errorf("the answer is %s", id)
	}
}
