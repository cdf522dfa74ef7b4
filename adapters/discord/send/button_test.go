package send_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"parley/adapters"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

// TestOurButtons checks a post with buttons, and the presses: a press that answers a question, and
// one that answers none, whose sender alone sees a sentence.
func TestOurButtons(t *testing.T) {
	for _, answers := range []bool{true, false} {
		l := testapp.Start(t, discordtest.Options{}, nil)
		l.Inbox.Triggers, l.Inbox.Decides = answers, true
		post := l.Post("k1", testapp.Room, "", "May I?")
		for n := range 6 {
			post.Buttons = append(post.Buttons, adapters.Button{ID: fmt.Sprint("parley-", n), Label: fmt.Sprint("Option ", n)})
		}
		id := l.Send(post)
		var sent struct{ Components []map[string]any }
		if err := json.Unmarshal(l.Posts(testapp.Room)[0].Body, &sent); err != nil || len(sent.Components) != 2 || len(sent.Components[0]["components"].([]any)) != 5 {
			t.Fatalf("the post is %s, %v", l.Posts(testapp.Room)[0].Body, err)
		}
		i, _ := l.Ask(testapp.Room, testapp.Mara, 3, map[string]any{"custom_id": "parley-5", "component_type": 2}, map[string]any{
			"message": map[string]any{"id": id, "components": sent.Components},
		})
		asked := l.Callback(i)
		if private := asked.Type == 4 && asked.Flags&64 != 0; private == answers || answers && asked.Type != 6 {
			t.Errorf("answers %v: the response is %+v", answers, asked)
		}
		if m := l.EventOf("action-" + i.ID).Message; m.Pressed != "parley-5" || m.Content != "Option 5" {
			t.Errorf("the message is %+v", m)
		}
	}
}
