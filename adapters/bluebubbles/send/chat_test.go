package send_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
)

// TestTheGUIDLastSeen checks that an answer goes to the chat by the service that the last
// message came by, or else by the one that the server knows.
func TestTheGUIDLastSeen(t *testing.T) {
	const sms, any = "SMS;-;" + testapp.Nora, "any;-;+15555550199"
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.SetChat(bluebubblestest.Chat{GUID: sms})
	n.SetChat(bluebubblestest.Chat{GUID: any})
	question, _ := n.Say(bluebubblestest.Message{Chat: sms, From: testapp.Nora, Text: "by text message"})
	n.Reply(testapp.Nora, question.GUID, "one")
	n.Reply("+15555550199", "", "two")
	n.SetChat(bluebubblestest.Chat{GUID: testapp.Group})
	n.Reply("chat640021977", "", "to all")
	n.Start()
	n.Say(bluebubblestest.Message{Chat: testapp.Direct, From: testapp.Nora, Text: "by iMessage", CreatedAt: time.Now().Add(time.Second)}) // after "one"
	n.Stop()
	n.Start() // reads the message
	n.Reply(testapp.Nora, question.GUID, "three")
	var got []string
	for _, m := range n.Sent() {
		got = append(got, m.Chat)
	}
	if diff := cmp.Diff([]string{sms, any, testapp.Group, testapp.Direct}, got); diff != "" {
		t.Error(diff)
	}
	_, err := n.Adapter.Send(t.Context(), adapters.Post{Key: "k9", To: adapters.Address{Channel: "chat640000000"}, Text: "x"})
	if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != adapters.Permanent {
		t.Errorf("an unknown chat: %v", err)
	}
	n.Script("GET chat", bluebubblestest.Fault{Status: http.StatusBadGateway})
	_, err = n.Adapter.Send(t.Context(), adapters.Post{Key: "k9", To: adapters.Address{Channel: "+15555550000"}, Text: "x"})
	if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != adapters.NotSent {
		t.Errorf("a chat that the server cannot look up: %v", err)
	}
}

// TestAnOlderMessageChangesNoGUID checks that a message which is read again, because it may have
// changed, does not choose the service of the answers. After a restart it is read behind the newer
// one.
func TestAnOlderMessageChangesNoGUID(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	n.Start()
	n.Stop()
	n.Put(bluebubblestest.Message{Chat: "SMS;-;" + testapp.Nora, From: testapp.Nora, Text: "by text message", CreatedAt: time.Now().Add(-time.Minute)})
	n.Start()
	n.Stop()
	n.Adapter = bluebubbles.New("home", testapp.Config(n.URL()))
	n.Adapter.UseState(n.State)
	question := n.Hears("by iMessage")
	n.Start()
	n.Reply(testapp.Nora, question.GUID, "yes")
	if sent := n.Sent(); sent[0].Chat != testapp.Direct {
		t.Errorf("the answer went to %s", sent[0].Chat)
	}
}

// TestAnAddressWithoutAChat checks that a text begins the chat, in the way that the server has, and that the next
// message goes there. A file begins none, and an answer without the message leaves the outcome unclear.
func TestAnAddressWithoutAChat(t *testing.T) {
	const pat, lee = "+15555550101", "lee@example.org"
	n := testapp.NewNode(t, testapp.Silent, func(c *bluebubbles.Config) { c.Poll = time.Hour })
	send := func(to string, file *adapters.File) (string, adapters.SendFailure) {
		post := adapters.Post{Key: "k1", To: adapters.Address{Channel: to}, Text: "x", File: file}
		if file != nil {
			post.Text = ""
		}
		id, err := n.Adapter.Send(t.Context(), post)
		failure, _ := errors.AsType[*adapters.SendError](err)
		if failure == nil {
			failure = new(adapters.SendError)
		}
		return id, failure.Failure
	}
	for range 2 {
		id, _ := send(pat, nil)
		sent := n.Sent()
		if last := sent[len(sent)-1]; last.Chat != "iMessage;-;"+pat || last.GUID != id {
			t.Errorf("%s %+v", id, last)
		}
	}
	if _, failure := send(lee, &adapters.File{Name: "a.txt"}); failure != adapters.Permanent {
		t.Errorf("a file: %v", failure)
	}
	n.Script("POST chat/new", bluebubblestest.Fault{Effect: true, Status: http.StatusInternalServerError})
	if _, failure := send(lee, nil); failure != adapters.Unclear {
		t.Errorf("a lost answer: %v", failure)
	}
	if ids, err := n.Adapter.List(t.Context(), adapters.Post{To: adapters.Address{Channel: lee}, Text: "x"}); err != nil || len(ids) != 1 {
		t.Errorf("%v %v", ids, err)
	}
}
