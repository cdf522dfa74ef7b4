package bluebubbles_test

import (
	"bytes"
	"errors"
	"flag"
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
	"parley/adapters/adaptertest"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/config/secret"
	"parley/ingest/event"
)

var update = flag.Bool("update", false, "overwrite the golden files")

// TestFormat checks plain text without placeholders, a bubble for each paragraph, and fewer bubbles
// for many.
func TestFormat(t *testing.T) {
	a := bluebubbles.New("home", settings("http://127.0.0.1:1"))
	for text, want := range map[string][]string{
		"":                               nil,
		"**Yes**, see [it](https://a.b)": {"Yes, see it (https://a.b)"},
		"One.\n\nTwo.\n\n- a\n- b":       {"One.", "Two.", "• a\n• b"},
		"a\ufffcb\n\n\ufffc":             {"ab"},
		"__init__.py is $x\\,y$":         {"__init__.py is $x\\,y$"},
		"1\n\n2\n\n3\n\n4":               {"1", "2", "3", "4"},
		"1\n\n2\n\n3\n\n4\n\n5":          {"1\n\n2\n\n3\n\n4\n\n5"},
	} {
		if diff := cmp.Diff(want, a.Format(text, nil)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func (n *node) reply(t *testing.T, chat, place, text string) {
	t.Helper()
	if _, err := n.adapter.Send(t.Context(), adapters.Post{Key: "k1", To: adapters.Address{Channel: chat, Place: place}, Text: text}); err != nil {
		t.Fatal(err)
	}
}

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
		n := newNode(t, bluebubblestest.Options{PrivateAPI: c.private}, func(config *bluebubbles.Config) { config.Method = c.method })
		question := n.hears("a question")
		sign := adapters.Sign{To: adapters.Address{Channel: nora, Place: question.GUID}}
		if err := n.adapter.ShowWorking(t.Context(), sign); err != nil || n.IsTyping(direct) != (c.reads > 0) {
			t.Errorf("%+v: typing %v, %v", c, n.IsTyping(direct), err)
		}
		n.reply(t, nora, question.GUID, "one")
		n.reply(t, nora, question.GUID, "two")
		sent := n.Sent()
		if len(sent) != 2 || sent[0].ReplyTo != "" || !strings.HasPrefix(sent[0].TempGUID, "k1.") || sent[0].TempGUID == sent[1].TempGUID {
			t.Errorf("%+v: sent %+v", c, sent)
		}
		if n.Reads(direct) != c.reads {
			t.Errorf("%+v: marked as read %d times", c, n.Reads(direct))
		}
		if n.adapter.Limits().Sign != (c.reads > 0) {
			t.Errorf("%+v: limits %+v", c, n.adapter.Limits())
		}
	}
}

// TestTheServerLosesItsPrivateAPI checks that a node without a poller notices this too.
func TestTheServerLosesItsPrivateAPI(t *testing.T) {
	private, bodies := true, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies += string(body)
		fmt.Fprintf(w, `{"status":200,"data":{"guid":%q,"private_api":%v,"helper_connected":%[2]v}}`, direct, private)
	}))
	defer server.Close()
	c := settings(server.URL)
	c.Poll = time.Nanosecond
	n := &node{live: &live{adapter: bluebubbles.New("home", c)}}
	n.reply(t, nora, "", "one")
	private = false
	n.reply(t, nora, "", "two")
	if strings.Count(bodies, "private-api") != 1 || strings.Count(bodies, "apple-script") != 1 {
		t.Errorf("the calls were %s", bodies)
	}
}

// TestTheHelperGoesAway checks that a message goes the other way at once if the private API's helper is
// gone, after one question to the server, and that a configured way is kept.
func TestTheHelperGoesAway(t *testing.T) {
	for _, method := range []string{bluebubbles.MethodAuto, bluebubbles.MethodPrivateAPI} {
		var mu sync.Mutex
		var calls []string
		taken := func() []string {
			mu.Lock()
			defer mu.Unlock()
			list := calls
			calls = nil
			return list
		}
		n := newNode(t, bluebubblestest.Options{PrivateAPI: true, OnCall: func(call bluebubblestest.Call) {
			mu.Lock()
			defer mu.Unlock()
			if call.Route != "POST message/query" { // the hook may still read
				calls = append(calls, call.Route)
			}
		}}, func(c *bluebubbles.Config) { c.Method = method })
		question := n.hears("a question")
		n.reply(t, nora, question.GUID, "one")
		n.LoseHelper(true)
		taken()
		to := adapters.Address{Channel: nora, Place: question.GUID}
		guid, err := n.adapter.Send(t.Context(), adapters.Post{Key: "k2", To: to, Text: "two"})
		routes := taken()
		failure, refused := errors.AsType[*adapters.SendError](err)
		switch method {
		case bluebubbles.MethodAuto:
			if diff := cmp.Diff([]string{"POST message/text", "GET server/info", "POST message/text"}, routes); diff != "" || guid == "" {
				t.Errorf("%s: guid %q, %v, %s", method, guid, err, diff)
			}
			n.reply(t, nora, question.GUID, "three")
			if diff := cmp.Diff([]string{"POST message/text"}, taken()); diff != "" {
				t.Errorf("the next message: %s", diff)
			}
		case bluebubbles.MethodPrivateAPI:
			if len(routes) != 1 || !refused || failure.Failure != adapters.NotSent {
				t.Errorf("%s: %q, %v", method, routes, err)
			}
		}
	}
}

// TestWorkingByReaction checks that a tapback on the question shows that the agent works, that it
// goes away, and that its events are ours. A question that is no message has no sign.
func TestWorkingByReaction(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{PrivateAPI: true}, func(c *bluebubbles.Config) { c.Working = bluebubbles.WorkingReaction })
	question := n.hears("a question")
	sign := adapters.Sign{To: adapters.Address{Channel: nora, Place: question.GUID}, Message: question.GUID}
	no := sign
	no.Message = "reaction/1"
	if err := errors.Join(n.adapter.ShowWorking(t.Context(), no), n.adapter.ShowWorking(t.Context(), sign), n.adapter.ClearWorking(t.Context(), sign)); err != nil {
		t.Error(err)
	}
	var tapbacks []string
	for _, m := range n.Messages()[1:] {
		tapbacks = append(tapbacks, m.Tapback+" on "+m.Target)
	}
	if diff := cmp.Diff([]string{"like on " + question.GUID, "-like on " + question.GUID}, tapbacks); diff != "" {
		t.Error(diff)
	}
	for kind, want := range map[string]string{"like": event.ReasonOwnMessage, "-like": event.ReasonOwnMessage, "love": ""} {
		body := fmt.Appendf(nil, `{"type":"new-message","data":{"guid":"g1","isFromMe":true,"associatedMessageType":%q,"associatedMessageGuid":"p:0/%s"}}`, kind, question.GUID)
		e, err := n.adapter.Normalize(t.Context(), event.Envelope{Workspace: "home", Platform: event.BlueBubbles, Body: body}, account{})
		if err != nil || e.Ignored != want {
			t.Errorf("the owner's tapback %s: %q, %v", kind, e.Ignored, err)
		}
	}
	n.Script("POST message/react", bluebubblestest.Fault{Status: http.StatusNotFound}, bluebubblestest.Fault{Status: http.StatusInternalServerError})
	if err := n.adapter.ClearWorking(t.Context(), sign); err != nil {
		t.Errorf("the question is gone: %v", err)
	}
	if n.adapter.ShowWorking(t.Context(), sign) == nil {
		t.Error("a failed call is no error")
	}
	off := settings(n.URL())
	if off.Working = bluebubbles.WorkingOff; !n.adapter.Limits().Sign || bluebubbles.New("home", off).Limits().Sign {
		t.Error("working: off has a sign, or reaction has none")
	}
}

// TestReadReceiptsOff checks that no chat is marked as read.
func TestReadReceiptsOff(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{PrivateAPI: true}, func(c *bluebubbles.Config) { c.ReadReceipts = bluebubbles.ReceiptsOff })
	n.reply(t, nora, n.hears("a question").GUID, "one")
	if n.Reads(direct) != 0 {
		t.Error("the chat was marked as read")
	}
}

// TestRepliesInGroups checks that the first bubble in a group refers to its question, if the
// private API is there.
func TestRepliesInGroups(t *testing.T) {
	for _, private := range []bool{true, false} {
		n := newNode(t, bluebubblestest.Options{PrivateAPI: private})
		question, _ := n.Say(bluebubblestest.Message{Chat: group, From: nora, Text: "a question"})
		n.reply(t, "chat640021977", question.GUID, "one")
		n.reply(t, "chat640021977", question.GUID, "two")
		n.reply(t, "chat640021977", "reaction/1", "three") // no message to refer to
		want := ""
		if private {
			want = question.GUID
		}
		if sent := n.Sent(); sent[0].ReplyTo != want || sent[1].ReplyTo != "" || sent[2].ReplyTo != "" {
			t.Errorf("private %v: sent %+v", private, sent)
		}
	}
}

// TestTheGUIDLastSeen checks that an answer goes to the chat by the service that the last
// message came by, or else by the one that the server knows.
func TestTheGUIDLastSeen(t *testing.T) {
	const sms, any = "SMS;-;" + nora, "any;-;+15555550199"
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.SetChat(bluebubblestest.Chat{GUID: sms})
	n.SetChat(bluebubblestest.Chat{GUID: any})
	question, _ := n.Say(bluebubblestest.Message{Chat: sms, From: nora, Text: "by text message"})
	n.reply(t, nora, question.GUID, "one")
	n.reply(t, "+15555550199", "", "two")
	n.SetChat(bluebubblestest.Chat{GUID: group})
	n.reply(t, "chat640021977", "", "to all")
	n.start()
	n.hears("by iMessage")
	n.stop()
	n.start() // reads the message
	n.reply(t, nora, question.GUID, "three")
	var got []string
	for _, m := range n.Sent() {
		got = append(got, m.Chat)
	}
	if diff := cmp.Diff([]string{sms, any, group, direct}, got); diff != "" {
		t.Error(diff)
	}
	_, err := n.adapter.Send(t.Context(), adapters.Post{Key: "k9", To: adapters.Address{Channel: "+15555550000"}, Text: "x"})
	if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != adapters.Permanent {
		t.Errorf("an unknown chat: %v", err)
	}
	n.Script("GET chat", bluebubblestest.Fault{Status: http.StatusBadGateway})
	_, err = n.adapter.Send(t.Context(), adapters.Post{Key: "k9", To: adapters.Address{Channel: "+15555550000"}, Text: "x"})
	if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != adapters.NotSent {
		t.Errorf("a chat that the server cannot look up: %v", err)
	}
}

// TestAnOlderMessageChangesNoGUID checks that a message which is read again, because it may have
// changed, does not choose the service of the answers. After a restart it is read behind the newer
// one.
func TestAnOlderMessageChangesNoGUID(t *testing.T) {
	n := newNode(t, silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.start()
	n.stop()
	n.Put(bluebubblestest.Message{Chat: "SMS;-;" + nora, From: nora, Text: "by text message", CreatedAt: time.Now().Add(-time.Minute)})
	n.start()
	n.stop()
	n.adapter = bluebubbles.New("home", settings(n.URL()))
	n.adapter.UseState(n.state)
	question := n.hears("by iMessage")
	n.start()
	n.reply(t, nora, question.GUID, "yes")
	if sent := n.Sent(); sent[0].Chat != direct {
		t.Errorf("the answer went to %s", sent[0].Chat)
	}
}

// TestList checks the search for a post whose outcome is unknown: own text may be
// in attributedBody only, and neither another chat nor another person's text counts.
func TestList(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{BodyOnly: true})
	made := time.Now()
	to := adapters.Address{Channel: nora, Place: n.hears("a question").GUID}
	post := adapters.Post{Key: "k1", To: to, Text: " yes ", NotBefore: made}
	n.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: "yes"})
	n.Put(bluebubblestest.Message{Chat: group, Text: "yes"})
	n.Put(bluebubblestest.Message{Chat: direct, Text: "yes", CreatedAt: made.Add(-time.Hour)})
	if ids, err := n.adapter.List(t.Context(), post); err != nil || ids != nil {
		t.Errorf("before the send: %q, %v", ids, err)
	}
	failed := n.Put(bluebubblestest.Message{Chat: direct, Text: "yes", Error: 22})
	if ids, err := n.adapter.List(t.Context(), post); !errors.Is(err, adapters.ErrUndelivered) || !cmp.Equal(ids, []string{failed.GUID}) {
		t.Errorf("with an undelivered message %s: %q, %v", failed.GUID, ids, err)
	}
	first := n.Put(bluebubblestest.Message{Chat: "SMS;-;" + nora, Text: "yes"})
	second := n.Put(bluebubblestest.Message{Chat: direct, Text: "yes\n"})
	if ids, err := n.adapter.List(t.Context(), post); err != nil || !cmp.Equal(ids, []string{first.GUID, second.GUID}) {
		t.Errorf("after the send: %q, %v", ids, err)
	}
	file := post
	file.Text, file.File = "", &adapters.File{Name: "a.txt", Size: 1, Open: nil}
	n.Put(bluebubblestest.Message{Chat: direct, Attachments: []bluebubblestest.Attachment{{GUID: "at_1", Name: "b.txt"}}})
	shared := n.Put(bluebubblestest.Message{Chat: direct, Attachments: []bluebubblestest.Attachment{{GUID: "at_2", Name: "a.txt"}}})
	if ids, err := n.adapter.List(t.Context(), file); err != nil || !cmp.Equal(ids, []string{shared.GUID}) {
		t.Errorf("a file: %q, %v", ids, err)
	}
	if text, attachment := n.adapter.Settles(post), n.adapter.Settles(file); text != 15*time.Second || attachment != 195*time.Second {
		t.Errorf("a text settles after %v, a file after %v", text, attachment)
	}
}

// TestLookupOfAnEMail checks that the name of an e-mail address is found, and no other.
func TestLookupOfAnEMail(t *testing.T) {
	n := newNode(t, silent)
	n.AddContact(bluebubblestest.Contact{Address: nora, Name: "Nora Lindqvist"})
	n.AddContact(bluebubblestest.Contact{Address: "Tomas@Example.org", Name: "Tomás Reyes"})
	if user, err := n.adapter.LookupUser(t.Context(), "tomas@example.org"); err != nil || user.DisplayName != "Tomás Reyes" {
		t.Errorf("%+v, %v", user, err)
	}
	if user, err := n.adapter.LookupUser(t.Context(), "nobody@example.org"); !errors.Is(err, adapters.ErrNoName) {
		t.Errorf("%+v, %v", user, err)
	}
}

// TestErrorsHideSecrets checks every form of the secrets in errors of the server and of the
// network.
func TestErrorsHideSecrets(t *testing.T) {
	words := "no: " + canary + " " + canaryQuery + " " + canaryPath + " " + canaryWebhook
	server := newEcho(t, http.StatusNotFound, fmt.Sprintf(`{"status":404,"message":"no","error":{"type":"x","message":%q}}`, words))
	a := bluebubbles.New("home", settings(server))
	_, err := a.LookupUser(t.Context(), nora)
	checkHidden(t, err)
	_, err = bluebubbles.New("home", settings("http://127.0.0.1:1")).LookupUser(t.Context(), nora)
	checkHidden(t, err)
	_, err = bluebubbles.New("home", settings("http://127.0.0.1:1")).Fetch(t.Context(), attachmentOf("at_1"))
	checkHidden(t, err)
	_, err = bluebubbles.New("home", settings("http://[::1]:x")).Fetch(t.Context(), attachmentOf("at_1"))
	checkHidden(t, err)
}

// TestAShortPasswordLeavesErrorsReadable checks that a password of one letter is not removed from words.
func TestAShortPasswordLeavesErrorsReadable(t *testing.T) {
	c := settings(newEcho(t, http.StatusNotFound, `{"status":404,"error":{"message":"there is no helper"}}`))
	c.Password = secret.New("e")
	_, err := bluebubbles.New("home", c).LookupUser(t.Context(), nora)
	if err == nil || !strings.Contains(err.Error(), "there is no helper") {
		t.Errorf("%v", err)
	}
}

func checkHidden(t *testing.T, err error) {
	t.Helper()
	for _, form := range []string{canary, canaryQuery, canaryPath, canaryWebhook, "password="} {
		if err == nil || strings.Contains(err.Error(), form) {
			t.Errorf("%q in the error %v", form, err)
		}
	}
}

// TestFetchConvertsNothing checks that an attachment comes as it was sent, and a missing one is
// an error.
func TestFetchConvertsNothing(t *testing.T) {
	n := newNode(t, silent)
	n.AddFile("at_1", []byte("content"))
	source, err := n.adapter.Fetch(t.Context(), attachmentOf("at_1"))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if got, err := io.ReadAll(source); err != nil || !bytes.Equal(got, []byte("content")) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := n.adapter.Fetch(t.Context(), attachmentOf("at_2")); err == nil {
		t.Error("a missing attachment was fetched")
	}
}

// TestAProxysAnswerIsNoRefusal checks that a 404 that is not the server's own is tried again, and a
// 413 is not.
func TestAProxysAnswerIsNoRefusal(t *testing.T) {
	n := newNode(t, bluebubblestest.Options{})
	n.reply(t, nora, n.hears("a question").GUID, "one")
	for status, want := range map[int]adapters.SendFailure{
		http.StatusBadRequest: adapters.Permanent, http.StatusInternalServerError: adapters.Unclear, http.StatusTooManyRequests: adapters.RateLimited,
	} {
		n.Script("POST message/text", bluebubblestest.Fault{Status: status})
		_, err := n.adapter.Send(t.Context(), adapters.Post{Key: "k2", To: adapters.Address{Channel: nora}, Text: "x"})
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != want {
			t.Errorf("%d: %v", status, err)
		}
	}
	n.Script("POST message/text", bluebubblestest.RateLimited(30*24*time.Hour))
	_, err := n.adapter.Send(t.Context(), adapters.Post{Key: "k2", To: adapters.Address{Channel: nora}, Text: "x"})
	if wait, limited := adapters.RetryAfter(err); !limited || wait > time.Hour {
		t.Errorf("a proxy stops the workspace for %v", wait)
	}
	for status, want := range map[int]adapters.SendFailure{http.StatusNotFound: adapters.NotSent, http.StatusRequestEntityTooLarge: adapters.Permanent} {
		proxy := newEcho(t, status, "<html>offline</html>")
		_, err = bluebubbles.New("home", settings(proxy)).Send(t.Context(), adapters.Post{Key: "k2", To: adapters.Address{Channel: nora}, Text: "x"})
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != want {
			t.Errorf("a proxy's %d: %v", status, err)
		}
	}
}

// TestAnotherServer checks that the answer of another server names the setting.
func TestAnotherServer(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotFound} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>Welcome</html>")
		}))
		_, err := bluebubbles.New("home", settings(server.URL)).LookupUser(t.Context(), nora)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), "bluebubbles.url") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestAnswers compares texts of answers with a golden file.
func TestAnswers(t *testing.T) {
	a := bluebubbles.New("home", settings("http://127.0.0.1:1"))
	adaptertest.Answers(t, "imessage", *update, func(text string) []string { return a.Format(text, nil) })
}

// newEcho starts a server that refuses every call with the same words.
func newEcho(t *testing.T, status int, words string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, words, status) }))
	t.Cleanup(server.Close)
	return server.URL
}

func attachmentOf(guid string) event.Attachment { return event.Attachment{ID: guid} }
