package send_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/ingest/event"
)

// TestCommandIsAnsweredByAFile checks that a file, and buttons, edit the response too.
func TestCommandIsAnsweredByAFile(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	i, _ := l.Command(testapp.Room, testapp.Mara, "a long story?")
	asked := l.Callback(i)
	post := l.Post("k1", testapp.Room, "command-"+i.ID, "")
	post.File = &adapters.File{Name: "story.md", MimeType: "text/markdown", Size: 5, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("story")), nil
	}}
	post.Buttons = []adapters.Button{{ID: "parley-1", Label: "More"}}
	l.Send(post)
	if posts := l.Posts(testapp.Room); len(posts) != 1 || posts[0].ID != asked.Answer || len(posts[0].Files) != 1 || !bytes.Contains(posts[0].Body, []byte(`"label":"More"`)) {
		t.Errorf("the posts are %+v", posts)
	}
}

// TestCommandIsAnswered checks the path of a slash command: its event, the deferred response, the
// answer that edits it, and the further posts.
func TestCommandIsAnswered(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	l.Script(discordtest.Callback, discordtest.Fault{Status: 503})
	i, _ := l.Command(testapp.Room, testapp.Mara, "what is new?")
	if asked := l.Callback(i); asked.Type != 5 || asked.Answer == "" {
		t.Errorf("the response is %+v", asked)
	}
	e := l.EventOf("command-" + i.ID)
	if m := e.Message; e.Kind != event.KindCommand || m.Content != "what is new?" || m.Addressed != event.AddressedCommand || m.Metadata.SenderID != "discord:"+testapp.Mara {
		t.Errorf("the event is %+v", e)
	}
	for _, stored := range l.Envelopes() {
		if bytes.Contains(stored.Body, []byte(i.Token)) {
			t.Error("the token of the interaction is stored")
		}
	}
	first := l.Send(l.Post("k1", testapp.Room, "command-"+i.ID, "the answer"))
	l.Send(l.Post("k1", testapp.Room, "command-"+i.ID, "the answer")) // after an unclear end
	l.Send(l.Post("k2", testapp.Room, "command-"+i.ID, "the rest"))
	posts := l.Posts(testapp.Room)
	if len(posts) != 2 || posts[0].ID != first || posts[0].ID != l.Asked(i.Token).Answer || posts[0].Content != "the answer" || posts[1].Content != "the rest" {
		t.Errorf("the posts are %+v", posts)
	}
	if err := l.Adapter.Edit(t.Context(), first, l.Post("k1", testapp.Room, "command-"+i.ID, "the final answer")); err != nil || l.Posts(testapp.Room)[0].Content != "the final answer" {
		t.Errorf("an edit: %v, %+v", err, l.Posts(testapp.Room))
	}
}

// TestACommandWithoutAnAnswer checks that the end of a run deletes the deferred responses that its
// turn has not edited, and none of a later turn or of another channel.
func TestACommandWithoutAnAnswer(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	var asked []discordtest.Interaction
	for _, channel := range []string{testapp.Direct, testapp.Room, testapp.Room, testapp.Room, testapp.Room} {
		i, _ := l.Command(channel, testapp.Mara, "what is new?")
		asked = append(asked, l.Callback(i))
	}
	l.Send(l.Post("k1", testapp.Room, "command-"+asked[2].ID, "the answer"))
	l.Inbox.Mu.Lock()
	l.Inbox.Triggers = false
	l.Inbox.Mu.Unlock()
	refused, _ := l.Command(testapp.Room, testapp.Mara, "may I?")
	l.Callback(refused)
	answered := "command-" + asked[3].ID
	sign := adapters.Sign{To: l.Post("", testapp.Room, answered, "").To, Message: answered}
	for _, fault := range []discordtest.Fault{{Status: http.StatusInternalServerError}, {}} {
		l.Script(discordtest.EndAnswer, fault)
		if err := l.Adapter.ClearWorking(t.Context(), sign); (err == nil) != (fault == discordtest.Fault{}) {
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
	if err := l.Adapter.ClearWorking(t.Context(), sign); err != nil {
		t.Errorf("the refusal of a command is deleted: %v", err)
	}
	id := l.Send(l.Post("k2", testapp.Room, answered, "late")) // at once: an ordinary message
	if posts := l.Posts(testapp.Room); posts[len(posts)-1].ID != id {
		t.Errorf("the posts are %+v", posts)
	}
}

// TestAnotherPostAnswersTheCommand: after a live preview that failed, the answer edits the response.
func TestAnotherPostAnswersTheCommand(t *testing.T) {
	for name, fault := range map[string]discordtest.Fault{
		"refused": {Status: http.StatusNotFound, Code: 10008}, "unclear": {Status: http.StatusInternalServerError},
	} {
		l := testapp.Start(t, discordtest.Options{}, nil)
		l.Inbox.Triggers, l.Inbox.Decides = true, true
		i, _ := l.Command(testapp.Room, testapp.Mara, "what is new?")
		l.Callback(i)
		l.Script(discordtest.EditAnswer, fault)
		preview := l.Post("k1", testapp.Room, "command-"+i.ID, "the")
		if _, err := l.Adapter.Send(t.Context(), preview); err == nil {
			t.Fatalf("%s: it was sent", name)
		}
		if _, found, err := l.Adapter.Find(t.Context(), preview); found || err != nil {
			t.Fatalf("%s: found %t, %v", name, found, err)
		}
		if id := l.Send(l.Post("k2", testapp.Room, "command-"+i.ID, "the answer")); id != l.Asked(i.Token).Answer {
			t.Errorf("%s: the answer is %+v", name, l.Posts(testapp.Room))
		}
		l.Stop()
	}
}

// TestCommandIsAnsweredWhereTheBotSeesNothing checks the edits and the removal of the response in a
// channel that the bot does not see: people can use its commands there.
func TestCommandIsAnsweredWhereTheBotSeesNothing(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	l.SetChannel(discordtest.Channel{ID: testapp.Room, Guild: testapp.Garden, Hidden: true})
	i, _ := l.Command(testapp.Room, testapp.Mara, "what is new?")
	l.Callback(i)
	id := l.Send(l.Post("k1", testapp.Room, "command-"+i.ID, "the"))
	final := l.Post("k2", testapp.Room, "command-"+i.ID, "the answer")
	if err := l.Adapter.Edit(t.Context(), id, final); err != nil || l.Posts(testapp.Room)[0].Content != "the answer" {
		t.Errorf("an edit: %v, %+v", err, l.Posts(testapp.Room))
	}
	if err := l.Adapter.Remove(t.Context(), id, final); err != nil || len(l.Posts(testapp.Room)) != 0 {
		t.Errorf("the removal: %v, %+v", err, l.Posts(testapp.Room))
	}
	if err := l.Adapter.Edit(t.Context(), id, l.Post("k3", testapp.Room, "", "the answer")); err == nil {
		t.Error("a message that answers no command was edited")
	}
}

// TestCommandIsAnsweredWhereTheBotMayNotWrite: every part of the answer and its files follow the
// command up, as long as Discord takes them, and are edited there.
func TestCommandIsAnsweredWhereTheBotMayNotWrite(t *testing.T) {
	for name, channel := range map[string]discordtest.Channel{"hidden": {Hidden: true}, "read only": {ReadOnly: true}} {
		l := testapp.Start(t, discordtest.Options{}, nil)
		l.Inbox.Triggers, l.Inbox.Decides = true, true
		channel.ID, channel.Guild = testapp.Room, testapp.Garden
		l.SetChannel(channel)
		i, _ := l.Command(testapp.Room, testapp.Mara, "what is new?")
		l.Callback(i)
		answered := "command-" + i.ID
		l.Send(l.Post("k1", testapp.Room, answered, "one"))
		second := l.Send(l.Post("k2", testapp.Room, answered, "two"))
		file := l.Post("k3", testapp.Room, answered, "")
		file.File = &adapters.File{Name: "a.txt", MimeType: "text/plain", Size: 2, Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("hi")), nil
		}}
		l.Send(file)
		posts := l.Posts(testapp.Room)
		if len(posts) != 3 || posts[0].Content != "one" || posts[1].ID != second || posts[1].Content != "two" || len(posts[2].Files) != 1 {
			t.Fatalf("%s: the posts are %+v", name, posts)
		}
		if err := l.Adapter.Edit(t.Context(), second, l.Post("k2", testapp.Room, answered, "two, at last")); err != nil || l.Posts(testapp.Room)[1].Content != "two, at last" {
			t.Errorf("%s: an edit: %v, %+v", name, err, l.Posts(testapp.Room))
		}
		if _, err := l.Adapter.Send(t.Context(), l.Post("k4", testapp.Room, "", "no answer")); err == nil {
			t.Errorf("%s: a post that answers no command was sent", name)
		}
		l.Stop()
		l.Adapter.Client.Now = func() time.Time { return time.Now().Add(15 * time.Minute) }
		_, err := l.Adapter.Send(t.Context(), l.Post("k5", testapp.Room, answered, "late"))
		if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.Permanent {
			t.Errorf("%s: after 15 minutes: %v", name, err)
		}
	}
}

func TestOldCommandIsAnsweredByPost(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	i, _ := l.Command(testapp.Room, testapp.Mara, "hello")
	l.Callback(i)
	l.Stop()
	l.Adapter.Client.Now = func() time.Time { return time.Now().Add(15 * time.Minute) }
	l.Send(l.Post("k1", testapp.Room, "command-"+i.ID, "late"))
	if posts := l.Posts(testapp.Room); posts[len(posts)-1].Content != "late" || posts[len(posts)-1].ID == l.Asked(i.Token).Answer {
		t.Errorf("the posts are %+v", posts)
	}
}

func TestMissingResponseIsAwaited(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.Script(discordtest.Callback, discordtest.Fault{Status: 503}, discordtest.Fault{Status: 503}, discordtest.Fault{Status: 503})
	l.Inbox.Triggers, l.Inbox.Decides = true, true
	l.Run()
	l.Up()
	i, _ := l.Command(testapp.Room, testapp.Mara, "hello")
	l.AwaitTexts(1)
	post := l.Post("k1", testapp.Room, "command-"+i.ID, "hi")
	_, err := l.Adapter.Send(t.Context(), post)
	if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.NotSent {
		t.Errorf("without a response: %v", err)
	}
	l.Stop()
	l.Adapter.Client.Now = func() time.Time { return time.Now().Add(11 * time.Second) }
	l.Send(post)
}
