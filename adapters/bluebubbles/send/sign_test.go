package send_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
	"parley/adapters/bluebubbles/send"
	"parley/ingest/event"
)

// TestWorkingByReaction checks that a tapback on the question shows that the agent works, that it
// goes away, and that its events are ours. A question that is no message has no sign.
func TestWorkingByReaction(t *testing.T) {
	n := testapp.NewNode(t, bluebubblestest.Options{PrivateAPI: true}, func(c *bluebubbles.Config) { c.Working = send.WorkingReaction })
	question := n.Hears("a question")
	sign := adapters.Sign{To: adapters.Address{Channel: testapp.Nora, Place: question.GUID}, Message: question.GUID}
	no := sign
	no.Message = "reaction/1"
	if err := errors.Join(n.Adapter.ShowWorking(t.Context(), no), n.Adapter.ShowWorking(t.Context(), sign), n.Adapter.ClearWorking(t.Context(), sign)); err != nil {
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
		e, err := n.Adapter.Normalize(t.Context(), event.Envelope{Workspace: "home", Platform: event.BlueBubbles, Body: body}, testapp.Directory{})
		if err != nil || e.Ignored != want {
			t.Errorf("the owner's tapback %s: %q, %v", kind, e.Ignored, err)
		}
	}
	n.Script("POST message/react", bluebubblestest.Fault{Status: http.StatusNotFound}, bluebubblestest.Fault{Status: http.StatusInternalServerError})
	if err := n.Adapter.ClearWorking(t.Context(), sign); err != nil {
		t.Errorf("the question is gone: %v", err)
	}
	if n.Adapter.ShowWorking(t.Context(), sign) == nil {
		t.Error("a failed call is no error")
	}
	off := testapp.Config(n.URL())
	if off.Working = send.WorkingOff; !n.Adapter.Limits().Sign || bluebubbles.New("home", off).Limits().Sign {
		t.Error("working: off has a sign, or reaction has none")
	}
}
