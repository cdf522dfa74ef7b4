package discord_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// callback waits for the response to an interaction.
func (l *live) callback(i discordtest.Interaction) discordtest.Interaction {
	l.t.Helper()
	return l.awaitAsked(i, func(i discordtest.Interaction) bool { return i.Type != 0 })
}

// awaitAsked waits for a state of an interaction.
func (l *live) awaitAsked(i discordtest.Interaction, ok func(discordtest.Interaction) bool) discordtest.Interaction {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Second)
	defer cancel()
	asked, err := l.AwaitAsked(ctx, i.Token, ok)
	if err != nil {
		l.t.Fatal(err)
	}
	return asked
}

// event returns the event of the message with an external id.
func (l *live) event(id string) event.Event {
	l.t.Helper()
	l.await(1)
	for _, e := range l.envelopes() {
		if got, err := l.adapter.Normalize(l.t.Context(), e, l.directory()); err == nil && got.Message != nil && got.Message.ExternalID == id {
			return got
		}
	}
	l.t.Fatalf("no event of %s arrived", id)
	return event.Event{}
}

func TestCommandsAreUpserted(t *testing.T) {
	var calls calls
	l := prepareLive(t, discordtest.Options{OnCall: calls.note}, nil)
	l.run()
	l.up()
	for {
		if commands, _ := l.Commands(); len(commands) == 5 {
			for _, name := range []string{"ask/1", "stop/1", "new/1", "status/1", "Ask about this/3"} {
				if commands[name] == nil {
					t.Errorf("the commands are %q", commands)
				}
			}
			break
		}
		select {
		case <-l.ended:
			t.Fatal("Run ended")
		case <-time.After(time.Millisecond):
		}
	}
	l.stop()
	if len(calls.of(discordtest.Overwrite)) != 0 {
		t.Error("the commands of others were overwritten")
	}
}

// TestCommandsAreOptional checks that commands: false registers none.
func TestCommandsAreOptional(t *testing.T) {
	l := startLive(t, discordtest.Options{}, func(c *discord.Config) { c.Commands = false })
	l.say(roomID, "hi")
	l.await(1)
	l.stop()
	if _, upserts := l.Commands(); upserts != 0 {
		t.Errorf("%d commands were registered", upserts)
	}
}

// TestLateRefusalReplacesTheResponse checks a command that is refused after the response was
// deferred: the response goes away, and its sender alone sees a sentence.
func TestLateRefusalReplacesTheResponse(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	l.inbox.decision = make(chan bool)
	l.run()
	l.up()
	i, _ := l.Command(roomID, mara, "hello")
	asked := l.callback(i)
	if asked.Type != 5 || !l.Has(roomID, asked.Answer) {
		t.Errorf("the response is %+v", asked)
	}
	l.inbox.decision <- false
	asked = l.awaitAsked(i, func(i discordtest.Interaction) bool { return i.Content != "" })
	if asked.Flags&64 == 0 || !strings.Contains(asked.Content, "Sorry") || l.Has(roomID, asked.Answer) {
		t.Errorf("after the refusal: %+v", asked)
	}
}

// TestCommandIsAnsweredByAFile checks that a file, and buttons, edit the response too.
func TestCommandIsAnsweredByAFile(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.inbox.runs, l.inbox.decides = true, true
	i, _ := l.Command(roomID, mara, "a long story?")
	asked := l.callback(i)
	post := l.post("k1", roomID, "command-"+i.ID, "")
	post.File = &adapters.File{Name: "story.md", MimeType: "text/markdown", Size: 5, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("story")), nil
	}}
	post.Buttons = []adapters.Button{{ID: "parley-1", Label: "More"}}
	l.send(post)
	if posts := l.Posts(roomID); len(posts) != 1 || posts[0].ID != asked.Answer || len(posts[0].Files) != 1 || !bytes.Contains(posts[0].Body, []byte(`"label":"More"`)) {
		t.Errorf("the posts are %+v", posts)
	}
}

// TestCommandIsAnswered checks the path of a slash command: its event, the deferred response, the
// answer that edits it, and the further posts.
func TestCommandIsAnswered(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.inbox.runs, l.inbox.decides = true, true
	l.Script(discordtest.Callback, discordtest.Fault{Status: 503})
	i, _ := l.Command(roomID, mara, "what is new?")
	if asked := l.callback(i); asked.Type != 5 || asked.Answer == "" {
		t.Errorf("the response is %+v", asked)
	}
	e := l.event("command-" + i.ID)
	if m := e.Message; e.Kind != event.KindCommand || m.Content != "what is new?" || m.Addressed != event.AddressedCommand || m.Metadata.SenderID != "discord:"+mara {
		t.Errorf("the event is %+v", e)
	}
	for _, stored := range l.envelopes() {
		if bytes.Contains(stored.Body, []byte(i.Token)) {
			t.Error("the token of the interaction is stored")
		}
	}
	first := l.send(l.post("k1", roomID, "command-"+i.ID, "the answer"))
	l.send(l.post("k1", roomID, "command-"+i.ID, "the answer")) // after an unclear end
	l.send(l.post("k2", roomID, "command-"+i.ID, "the rest"))
	posts := l.Posts(roomID)
	if len(posts) != 2 || posts[0].ID != first || posts[0].ID != l.Asked(i.Token).Answer || posts[0].Content != "the answer" || posts[1].Content != "the rest" {
		t.Errorf("the posts are %+v", posts)
	}
	if err := l.adapter.Edit(t.Context(), first, l.post("k1", roomID, "command-"+i.ID, "the final answer")); err != nil || l.Posts(roomID)[0].Content != "the final answer" {
		t.Errorf("an edit: %v, %+v", err, l.Posts(roomID))
	}
}

// TestACommandWithoutAnAnswer checks that the end of a run deletes the deferred responses that its
// turn has not edited, and none of a later turn or of another channel.
func TestACommandWithoutAnAnswer(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.inbox.runs, l.inbox.decides = true, true
	var asked []discordtest.Interaction
	for _, channel := range []string{directID, roomID, roomID, roomID, roomID} {
		i, _ := l.Command(channel, mara, "what is new?")
		asked = append(asked, l.callback(i))
	}
	l.send(l.post("k1", roomID, "command-"+asked[2].ID, "the answer"))
	l.inbox.mu.Lock()
	l.inbox.runs = false
	l.inbox.mu.Unlock()
	refused, _ := l.Command(roomID, mara, "may I?")
	l.callback(refused)
	answered := "command-" + asked[3].ID
	sign := adapters.Sign{To: l.post("", roomID, answered, "").To, Message: answered}
	for _, fault := range []discordtest.Fault{{Status: http.StatusInternalServerError}, {}} {
		l.Script(discordtest.EndAnswer, fault)
		if err := l.adapter.ClearWorking(t.Context(), sign); (err == nil) != (fault == discordtest.Fault{}) {
			t.Errorf("%+v: ClearWorking returns %v", fault, err)
		}
	}
	for n, want := range []bool{true, false, true, false, true} {
		if got := l.Has(asked[n].Channel, asked[n].Answer); got != want {
			t.Errorf("the response to command %d is there: %v", n, got)
		}
	}
	sign.Message = "command-" + refused.ID
	l.Script(discordtest.EndAnswer, discordtest.Fault{}, discordtest.Fault{Cut: true}) // one for the later turn's, and none for the refusal
	if err := l.adapter.ClearWorking(t.Context(), sign); err != nil {
		t.Errorf("the refusal of a command is deleted: %v", err)
	}
	id := l.send(l.post("k2", roomID, answered, "late")) // at once: an ordinary message
	if posts := l.Posts(roomID); posts[len(posts)-1].ID != id {
		t.Errorf("the posts are %+v", posts)
	}
}

// TestAnotherPostAnswersTheCommand: after a live preview that failed, the answer edits the response.
func TestAnotherPostAnswersTheCommand(t *testing.T) {
	for name, fault := range map[string]discordtest.Fault{
		"refused": {Status: http.StatusNotFound, Code: 10008}, "unclear": {Status: http.StatusInternalServerError},
	} {
		l := startLive(t, discordtest.Options{}, nil)
		l.inbox.runs, l.inbox.decides = true, true
		i, _ := l.Command(roomID, mara, "what is new?")
		l.callback(i)
		l.Script(discordtest.EditAnswer, fault)
		preview := l.post("k1", roomID, "command-"+i.ID, "the")
		if _, err := l.adapter.Send(t.Context(), preview); err == nil {
			t.Fatalf("%s: it was sent", name)
		}
		if _, found, err := l.adapter.Find(t.Context(), preview); found || err != nil {
			t.Fatalf("%s: found %t, %v", name, found, err)
		}
		if id := l.send(l.post("k2", roomID, "command-"+i.ID, "the answer")); id != l.Asked(i.Token).Answer {
			t.Errorf("%s: the answer is %+v", name, l.Posts(roomID))
		}
		l.stop()
	}
}

// TestCommandIsAnsweredWhereTheBotSeesNothing checks the edits and the removal of the response in a
// channel that the bot does not see: people can use its commands there.
func TestCommandIsAnsweredWhereTheBotSeesNothing(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.inbox.runs, l.inbox.decides = true, true
	l.SetChannel(discordtest.Channel{ID: roomID, Guild: gardenID, Hidden: true})
	i, _ := l.Command(roomID, mara, "what is new?")
	l.callback(i)
	id := l.send(l.post("k1", roomID, "command-"+i.ID, "the"))
	final := l.post("k2", roomID, "command-"+i.ID, "the answer")
	if err := l.adapter.Edit(t.Context(), id, final); err != nil || l.Posts(roomID)[0].Content != "the answer" {
		t.Errorf("an edit: %v, %+v", err, l.Posts(roomID))
	}
	if err := l.adapter.Remove(t.Context(), id, final); err != nil || len(l.Posts(roomID)) != 0 {
		t.Errorf("the removal: %v, %+v", err, l.Posts(roomID))
	}
	if err := l.adapter.Edit(t.Context(), id, l.post("k3", roomID, "", "the answer")); err == nil {
		t.Error("a message that answers no command was edited")
	}
}

// TestCommandIsAnsweredWhereTheBotMayNotWrite: every part of the answer and its files follow the
// command up, as long as Discord takes them, and are edited there.
func TestCommandIsAnsweredWhereTheBotMayNotWrite(t *testing.T) {
	for name, channel := range map[string]discordtest.Channel{"hidden": {Hidden: true}, "read only": {ReadOnly: true}} {
		l := startLive(t, discordtest.Options{}, nil)
		l.inbox.runs, l.inbox.decides = true, true
		channel.ID, channel.Guild = roomID, gardenID
		l.SetChannel(channel)
		i, _ := l.Command(roomID, mara, "what is new?")
		l.callback(i)
		answered := "command-" + i.ID
		l.send(l.post("k1", roomID, answered, "one"))
		second := l.send(l.post("k2", roomID, answered, "two"))
		file := l.post("k3", roomID, answered, "")
		file.File = &adapters.File{Name: "a.txt", MimeType: "text/plain", Size: 2, Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("hi")), nil
		}}
		l.send(file)
		posts := l.Posts(roomID)
		if len(posts) != 3 || posts[0].Content != "one" || posts[1].ID != second || posts[1].Content != "two" || len(posts[2].Files) != 1 {
			t.Fatalf("%s: the posts are %+v", name, posts)
		}
		if err := l.adapter.Edit(t.Context(), second, l.post("k2", roomID, answered, "two, at last")); err != nil || l.Posts(roomID)[1].Content != "two, at last" {
			t.Errorf("%s: an edit: %v, %+v", name, err, l.Posts(roomID))
		}
		if _, err := l.adapter.Send(t.Context(), l.post("k4", roomID, "", "no answer")); err == nil {
			t.Errorf("%s: a post that answers no command was sent", name)
		}
		l.stop()
		l.adapter.SetClock(func() time.Time { return time.Now().Add(15 * time.Minute) })
		_, err := l.adapter.Send(t.Context(), l.post("k5", roomID, answered, "late"))
		if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.Permanent {
			t.Errorf("%s: after 15 minutes: %v", name, err)
		}
	}
}

// TestGlobalLimitLeavesCommands checks that a command gets its response during a limit of all calls,
// which Discord does not apply to responses.
func TestGlobalLimitLeavesCommands(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.inbox.runs, l.inbox.decides = true, true
	l.Script(discordtest.GetUser, discordtest.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute, Scope: "global"})
	if _, err := l.adapter.LookupUser(t.Context(), mara); err == nil {
		t.Fatal("there is no limit")
	}
	i, _ := l.Command(roomID, mara, "hello")
	if asked := l.callback(i); asked.Type != 5 {
		t.Errorf("the response is %+v", asked)
	}
	if id := l.send(l.post("k1", roomID, "command-"+i.ID, "the answer")); id != l.Asked(i.Token).Answer {
		t.Errorf("the answer is %s", id)
	}
}

// TestChatCommand checks a command that asks the agent nothing: its notice edits the response.
func TestChatCommand(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.inbox.runs, l.inbox.decides = true, true
	i, _ := l.ChatCommand(roomID, mara, "stop")
	if asked := l.callback(i); asked.Type != 5 {
		t.Errorf("the response is %+v", asked)
	}
	if m := l.event("command-" + i.ID).Message; m.Command != "stop" || m.Content != "/stop" || m.Addressed != event.AddressedCommand {
		t.Errorf("the message is %+v", m)
	}
	l.send(l.post("k1", roomID, "command-"+i.ID, "Stopped."))
	if posts := l.Posts(roomID); len(posts) != 1 || posts[0].Content != "Stopped." {
		t.Errorf("the posts are %+v", posts)
	}
}

func TestRefusedCommandIsAnsweredInPrivate(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.inbox.runs, l.inbox.decides = false, true
	i, _ := l.Command(roomID, mara, "hello")
	if asked := l.callback(i); asked.Type != 4 || asked.Flags&64 == 0 || !strings.Contains(asked.Content, "Sorry") {
		t.Errorf("the response is %+v", asked)
	}
	l.send(l.post("k1", roomID, "command-"+i.ID, "Please ask later.")) // a notice, such as of a limit
	if asked := l.Asked(i.Token); len(l.Posts(roomID)) != 0 || asked.Content != "Please ask later." {
		t.Errorf("after a notice: %+v, and the posts %+v", asked, l.Posts(roomID))
	}
}

func TestOldCommandIsAnsweredByPost(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.inbox.runs, l.inbox.decides = true, true
	i, _ := l.Command(roomID, mara, "hello")
	l.callback(i)
	l.stop()
	l.adapter.SetClock(func() time.Time { return time.Now().Add(15 * time.Minute) })
	l.send(l.post("k1", roomID, "command-"+i.ID, "late"))
	if posts := l.Posts(roomID); posts[len(posts)-1].Content != "late" || posts[len(posts)-1].ID == l.Asked(i.Token).Answer {
		t.Errorf("the posts are %+v", posts)
	}
}

func TestMissingResponseIsAwaited(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	l.Script(discordtest.Callback, discordtest.Fault{Status: 503}, discordtest.Fault{Status: 503}, discordtest.Fault{Status: 503})
	l.inbox.runs, l.inbox.decides = true, true
	l.run()
	l.up()
	i, _ := l.Command(roomID, mara, "hello")
	l.await(1)
	post := l.post("k1", roomID, "command-"+i.ID, "hi")
	_, err := l.adapter.Send(t.Context(), post)
	if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.NotSent {
		t.Errorf("without a response: %v", err)
	}
	l.stop()
	l.adapter.SetClock(func() time.Time { return time.Now().Add(11 * time.Second) })
	l.send(post)
}

func TestMessageCommandQuotes(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	m := l.say(roomID, "look at this")
	i, _ := l.Ask(roomID, mara, 2, map[string]any{"id": "1", "type": 3, "name": "Ask about this", "target_id": m.ID, "resolved": map[string]any{
		"messages": map[string]any{m.ID: map[string]any{"id": m.ID, "content": m.Content, "author": map[string]any{"id": ash, "username": "ash"}}}}}, nil)
	l.callback(i)
	e := l.event("command-" + i.ID)
	if q := e.Message.Quoted; e.Kind != event.KindCommand || q == nil || q.Content != "look at this" || q.SenderID != "discord:"+ash {
		t.Errorf("the event is %+v", e.Message)
	}
}

// TestOurButtons checks a post with buttons, and the presses: a press that answers a question, and
// one that answers none, whose sender alone sees a sentence.
func TestOurButtons(t *testing.T) {
	for _, answers := range []bool{true, false} {
		l := startLive(t, discordtest.Options{}, nil)
		l.inbox.runs, l.inbox.decides = answers, true
		post := l.post("k1", roomID, "", "May I?")
		for n := range 6 {
			post.Buttons = append(post.Buttons, adapters.Button{ID: fmt.Sprint("parley-", n), Label: fmt.Sprint("Option ", n)})
		}
		id := l.send(post)
		var sent struct{ Components []map[string]any }
		if err := json.Unmarshal(l.Posts(roomID)[0].Body, &sent); err != nil || len(sent.Components) != 2 || len(sent.Components[0]["components"].([]any)) != 5 {
			t.Fatalf("the post is %s, %v", l.Posts(roomID)[0].Body, err)
		}
		i, _ := l.Ask(roomID, mara, 3, map[string]any{"custom_id": "parley-5", "component_type": 2}, map[string]any{
			"message": map[string]any{"id": id, "components": sent.Components},
		})
		asked := l.callback(i)
		if private := asked.Type == 4 && asked.Flags&64 != 0; private == answers || answers && asked.Type != 6 {
			t.Errorf("answers %v: the response is %+v", answers, asked)
		}
		if m := l.event("action-" + i.ID).Message; m.Pressed != "parley-5" || m.Content != "Option 5" {
			t.Errorf("the message is %+v", m)
		}
	}
}

func TestButtonsComeBack(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	on := map[string]any{"id": "1529841438720000000", "components": []any{map[string]any{"type": 1, "components": []any{
		map[string]any{"type": 2, "label": "Approve", "custom_id": "yes"}}}}}
	i, _ := l.Ask(roomID, mara, 3, map[string]any{"custom_id": "yes", "component_type": 2}, map[string]any{"message": on})
	if asked := l.callback(i); asked.Type != 6 {
		t.Errorf("the response is %+v", asked)
	}
	e := l.event("action-" + i.ID)
	if e.Kind != event.KindAction || e.Message.Content != "Approve" || e.Message.Addressed != event.AddressedAction || e.Message.Pressed != "" {
		t.Errorf("the event is %+v", e.Message)
	}
	if keys := l.adapter.Keys(l.envelopes()[0], l.directory()); keys.PostID != "1529841438720000000" || keys.Thread != payload.ThreadKey("acme", roomID) {
		t.Errorf("the keys are %+v", keys)
	}
}
