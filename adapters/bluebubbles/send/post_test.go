package send_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/internal/testapp"
	"parley/adapters/bluebubbles/send"
)

// TestALongAnswerIsAFile checks the bound of an answer that has bubbles.
func TestALongAnswerIsAFile(t *testing.T) {
	if over := bluebubbles.New("home", bluebubbles.DefaultConfig()).Limits().FileOver; over != 20_000 {
		t.Errorf("an answer is a file above %d characters", over)
	}
}

// TestMethods checks the way of sending, the temporary guid, typing and receipts, with and
// without the private API.
func TestMethods(t *testing.T) {
	for _, c := range []struct {
		method  string
		private bool // the server has it
		used    string
		reads   int
	}{
		{"auto", true, "private-api", 1}, {"auto", false, "apple-script", 0}, {"apple-script", true, "apple-script", 0}, {"private-api", true, "private-api", 1},
	} {
		n := testapp.NewNode(t, bluebubblestest.Options{PrivateAPI: c.private}, func(config *bluebubbles.Config) { config.Method = c.method })
		question := n.Hears("a question")
		sign := adapters.Sign{To: adapters.Address{Channel: testapp.Nora, Place: question.GUID}}
		if err := n.Adapter.ShowWorking(t.Context(), sign); err != nil || n.IsTyping(testapp.Direct) != (c.reads > 0) {
			t.Errorf("%+v: typing %v, %v", c, n.IsTyping(testapp.Direct), err)
		}
		n.Reply(testapp.Nora, question.GUID, "one")
		n.Reply(testapp.Nora, question.GUID, "two")
		sent := n.Sent()
		if len(sent) != 2 || sent[0].ReplyTo != "" || !strings.HasPrefix(sent[0].TempGUID, "k1.") || sent[0].TempGUID == sent[1].TempGUID {
			t.Errorf("%+v: sent %+v", c, sent)
		}
		if n.Reads(testapp.Direct) != c.reads {
			t.Errorf("%+v: marked as read %d times", c, n.Reads(testapp.Direct))
		}
		if n.Adapter.Limits().Sign != (c.reads > 0) {
			t.Errorf("%+v: limits %+v", c, n.Adapter.Limits())
		}
	}
}

// TestTheServerLosesItsPrivateAPI checks that a node without a poller notices this too.
func TestTheServerLosesItsPrivateAPI(t *testing.T) {
	private, bodies := true, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies += string(body)
		fmt.Fprintf(w, `{"status":200,"data":{"guid":%q,"private_api":%v,"helper_connected":%[2]v}}`, testapp.Direct, private)
	}))
	defer server.Close()
	c := testapp.Config(server.URL)
	c.Poll = time.Nanosecond
	a := bluebubbles.New("home", c)
	testapp.Reply(t, a, testapp.Nora, "", "one")
	private = false
	testapp.Reply(t, a, testapp.Nora, "", "two")
	if strings.Count(bodies, "private-api") != 1 || strings.Count(bodies, "apple-script") != 1 {
		t.Errorf("the calls were %s", bodies)
	}
}

// TestTheHelperGoesAway checks that a message goes the other way at once if the private API's helper is
// gone, after one question to the server, and that a configured way is kept.
func TestTheHelperGoesAway(t *testing.T) {
	for _, method := range []string{call.MethodAuto, call.MethodPrivateAPI} {
		var mu sync.Mutex
		var calls []string
		taken := func() []string {
			mu.Lock()
			defer mu.Unlock()
			list := calls
			calls = nil
			return list
		}
		n := testapp.NewNode(t, bluebubblestest.Options{PrivateAPI: true, OnCall: func(call bluebubblestest.Call) {
			mu.Lock()
			defer mu.Unlock()
			if call.Route != "POST message/query" { // the hook may still read
				calls = append(calls, call.Route)
			}
		}}, func(c *bluebubbles.Config) { c.Method = method })
		question := n.Hears("a question")
		n.Reply(testapp.Nora, question.GUID, "one")
		n.LoseHelper(true)
		taken()
		to := adapters.Address{Channel: testapp.Nora, Place: question.GUID}
		guid, err := n.Adapter.Send(t.Context(), adapters.Post{Key: "k2", To: to, Text: "two"})
		routes := taken()
		failure, refused := errors.AsType[*adapters.SendError](err)
		switch method {
		case call.MethodAuto:
			if diff := cmp.Diff([]string{"POST message/text", "GET server/info", "POST message/text"}, routes); diff != "" || guid == "" {
				t.Errorf("%s: guid %q, %v, %s", method, guid, err, diff)
			}
			n.Reply(testapp.Nora, question.GUID, "three")
			if diff := cmp.Diff([]string{"POST message/text"}, taken()); diff != "" {
				t.Errorf("the next message: %s", diff)
			}
		case call.MethodPrivateAPI:
			if len(routes) != 1 || !refused || failure.Failure != adapters.NotSent {
				t.Errorf("%s: %q, %v", method, routes, err)
			}
		}
	}
}

// TestReadReceiptsOff checks that no chat is marked as read.
func TestReadReceiptsOff(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{PrivateAPI: true}, func(c *bluebubbles.Config) { c.ReadReceipts = send.ReceiptsOff })
	n.Reply(testapp.Nora, n.Hears("a question").GUID, "one")
	if n.Reads(testapp.Direct) != 0 {
		t.Error("the chat was marked as read")
	}
}

// TestRepliesInGroups checks that the first bubble in a group refers to its question, if the
// private API is there.
func TestRepliesInGroups(t *testing.T) {
	for _, private := range []bool{true, false} {
		n := testapp.NewNode(t, bluebubblestest.Options{PrivateAPI: private})
		question, _ := n.Say(bluebubblestest.Message{Chat: testapp.Group, From: testapp.Nora, Text: "a question"})
		n.Reply("chat640021977", question.GUID, "one")
		n.Reply("chat640021977", question.GUID, "two")
		n.Reply("chat640021977", "reaction/1", "three") // no message to refer to
		want := ""
		if private {
			want = question.GUID
		}
		if sent := n.Sent(); sent[0].ReplyTo != want || sent[1].ReplyTo != "" || sent[2].ReplyTo != "" {
			t.Errorf("private %v: sent %+v", private, sent)
		}
	}
}

// TestAProxysAnswerIsNoRefusal checks that a 404 that is not the server's own is tried again, and a
// 413 is not.
func TestAProxysAnswerIsNoRefusal(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{})
	n.Reply(testapp.Nora, n.Hears("a question").GUID, "one")
	for status, want := range map[int]adapters.SendFailure{
		http.StatusBadRequest: adapters.Permanent, http.StatusInternalServerError: adapters.Unclear, http.StatusTooManyRequests: adapters.RateLimited,
	} {
		n.Script("POST message/text", bluebubblestest.Fault{Status: status})
		_, err := n.Adapter.Send(t.Context(), adapters.Post{Key: "k2", To: adapters.Address{Channel: testapp.Nora}, Text: "x"})
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != want {
			t.Errorf("%d: %v", status, err)
		}
	}
	n.Script("POST message/text", bluebubblestest.RateLimited(30*24*time.Hour))
	_, err := n.Adapter.Send(t.Context(), adapters.Post{Key: "k2", To: adapters.Address{Channel: testapp.Nora}, Text: "x"})
	if wait, limited := adapters.RetryAfter(err); !limited || wait > time.Hour {
		t.Errorf("a proxy stops the workspace for %v", wait)
	}
	for status, want := range map[int]adapters.SendFailure{http.StatusNotFound: adapters.NotSent, http.StatusRequestEntityTooLarge: adapters.Permanent} {
		proxy := testapp.Echo(t, status, "<html>offline</html>")
		_, err = bluebubbles.New("home", testapp.Config(proxy)).Send(t.Context(), adapters.Post{Key: "k2", To: adapters.Address{Channel: testapp.Nora}, Text: "x"})
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != want {
			t.Errorf("a proxy's %d: %v", status, err)
		}
	}
}
