package live_test

import (
	"strings"
	"testing"
	"time"

	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

func TestCommandsAreUpserted(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Prepare(t, discordtest.Options{OnCall: calls.Note}, nil)
	l.Run()
	l.Up()
	for {
		if commands, _ := l.Commands(); len(commands) == 7 {
			for _, name := range []string{"ask/1", "stop/1", "new/1", "status/1", "schedules/1", "unschedule/1", "Ask about this/3"} {
				if commands[name] == nil {
					t.Errorf("the commands are %q", commands)
				}
			}
			break
		}
		select {
		case <-l.Ended:
			t.Fatal("Run ended")
		case <-time.After(time.Millisecond):
		}
	}
	l.Stop()
	if len(calls.Of(discordtest.Overwrite)) != 0 {
		t.Error("the commands of others were overwritten")
	}
}

// TestCommandsAreOptional checks that commands: false registers none.
func TestCommandsAreOptional(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, func(c *discord.Config) { c.Commands = false })
	l.MaraSays(testapp.Room, "hi")
	l.AwaitTexts(1)
	l.Stop()
	if _, upserts := l.Commands(); upserts != 0 {
		t.Errorf("%d commands were registered", upserts)
	}
}

// TestLateRefusalReplacesTheResponse checks a command that is refused after the response was
// deferred: the response goes away, and its sender alone sees a sentence.
func TestLateRefusalReplacesTheResponse(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.Inbox.Decision = make(chan bool)
	l.Run()
	l.Up()
	i, _ := l.Command(testapp.Room, testapp.Mara, "hello")
	asked := l.Callback(i)
	if asked.Type != 5 || !l.Has(testapp.Room, asked.Answer) {
		t.Errorf("the response is %+v", asked)
	}
	l.Inbox.Decision <- false
	asked = l.AwaitResponse(i, func(i discordtest.Interaction) bool { return i.Content != "" })
	if asked.Flags&64 == 0 || !strings.Contains(asked.Content, "Sorry") || l.Has(testapp.Room, asked.Answer) {
		t.Errorf("after the refusal: %+v", asked)
	}
}

// TestChatCommand checks a command that asks the agent nothing: its notice edits the response.
func TestChatCommand(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	i, _ := l.ChatCommand(testapp.Room, testapp.Mara, "stop")
	if asked := l.Callback(i); asked.Type != 5 {
		t.Errorf("the response is %+v", asked)
	}
	if m := l.EventOf("command-" + i.ID).Message; m.Command != "stop" || m.Content != "/stop" || m.Addressed != event.AddressedCommand {
		t.Errorf("the message is %+v", m)
	}
	l.Send(l.Post("k1", testapp.Room, "command-"+i.ID, "Stopped."))
	if posts := l.Posts(testapp.Room); len(posts) != 1 || posts[0].Content != "Stopped." {
		t.Errorf("the posts are %+v", posts)
	}
}

func TestRefusedCommandIsAnsweredInPrivate(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.Inbox.Triggers, l.Inbox.Decides = false, true
	i, _ := l.Command(testapp.Room, testapp.Mara, "hello")
	if asked := l.Callback(i); asked.Type != 4 || asked.Flags&64 == 0 || !strings.Contains(asked.Content, "Sorry") {
		t.Errorf("the response is %+v", asked)
	}
	l.Send(l.Post("k1", testapp.Room, "command-"+i.ID, "Please ask later.")) // a notice, such as of a limit
	if asked := l.Asked(i.Token); len(l.Posts(testapp.Room)) != 0 || asked.Content != "Please ask later." {
		t.Errorf("after a notice: %+v, and the posts %+v", asked, l.Posts(testapp.Room))
	}
}

func TestMessageCommandQuotes(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	m := l.MaraSays(testapp.Room, "look at this")
	i, _ := l.Ask(testapp.Room, testapp.Mara, 2, map[string]any{"id": "1", "type": 3, "name": "Ask about this", "target_id": m.ID, "resolved": map[string]any{
		"messages": map[string]any{m.ID: map[string]any{"id": m.ID, "content": m.Content, "author": map[string]any{"id": testapp.Ash, "username": "ash"}}}}}, nil)
	l.Callback(i)
	e := l.EventOf("command-" + i.ID)
	if q := e.Message.Quoted; e.Kind != event.KindCommand || q == nil || q.Content != "look at this" || q.SenderID != "discord:"+testapp.Ash {
		t.Errorf("the event is %+v", e.Message)
	}
}

func TestButtonsComeBack(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	on := map[string]any{"id": "1529841438720000000", "components": []any{map[string]any{"type": 1, "components": []any{
		map[string]any{"type": 2, "label": "Approve", "custom_id": "yes"}}}}}
	i, _ := l.Ask(testapp.Room, testapp.Mara, 3, map[string]any{"custom_id": "yes", "component_type": 2}, map[string]any{"message": on})
	if asked := l.Callback(i); asked.Type != 6 {
		t.Errorf("the response is %+v", asked)
	}
	e := l.EventOf("action-" + i.ID)
	if e.Kind != event.KindAction || e.Message.Content != "Approve" || e.Message.Addressed != event.AddressedAction || e.Message.Pressed != "" {
		t.Errorf("the event is %+v", e.Message)
	}
	if keys := l.Adapter.Keys(l.Envelopes()[0], l.Directory()); keys.PostID != "1529841438720000000" || keys.Thread != payload.ThreadKey("acme", testapp.Room) {
		t.Errorf("the keys are %+v", keys)
	}
}

// TestFullInteractionsTakeACommand sends a command while the state holds as many open
// interactions as it can.
func TestFullInteractionsTakeACommand(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	testapp.Fill(t, l.State, "interactions", `{"id":"900000000000%07d","application_id":"15298414387200000000","token":"`+strings.Repeat("t", 200)+`"}`)
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	l.Run()
	l.Up()
	i, _ := l.Command(testapp.Room, testapp.Mara, "hello")
	l.Callback(i)
	if end := testapp.Newest(t, l.State, "interactions"); !strings.Contains(end, i.Token) {
		t.Errorf("the interactions end with %s", end)
	}
}
