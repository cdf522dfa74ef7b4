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
	n.Hears("by iMessage")
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
	_, err := n.Adapter.Send(t.Context(), adapters.Post{Key: "k9", To: adapters.Address{Channel: "+15555550000"}, Text: "x"})
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
