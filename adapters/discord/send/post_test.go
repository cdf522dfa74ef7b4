package send_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/adapters"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

// sentBody is the body of a call that posts or edits.
type sentBody struct {
	Content         string
	Flags           int
	Nonce           string
	EnforceNonce    bool `json:"enforce_nonce"`
	AllowedMentions *struct {
		Parse       []string
		Users       []string
		RepliedUser bool `json:"replied_user"`
	} `json:"allowed_mentions"`
	Reference *struct {
		MessageID       string `json:"message_id"`
		FailIfNotExists *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// check checks the part that every call has: only the named users are pinged, and links have no
// previews.
func (b sentBody) check(t *testing.T, users ...string) {
	t.Helper()
	if m := b.AllowedMentions; m == nil || m.Parse == nil || len(m.Parse) != 0 || m.RepliedUser || !slices.Equal(m.Users, users) {
		t.Errorf("allowed_mentions is %+v, want the users %q", m, users)
	}
	if b.Flags&4 == 0 {
		t.Error("the previews of links are not suppressed")
	}
}

func decodeBody(t *testing.T, c discordtest.Call) (b sentBody) {
	t.Helper()
	if err := json.Unmarshal(c.Body, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPostsReferToTheQuestion(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Prepare(t, discordtest.Options{OnCall: calls.Note}, nil)
	question := l.MaraSays(testapp.Room, "a question")
	id := l.Send(l.Post("k1", testapp.Room, question.ID, "hi <@"+testapp.Mara+">, see https://example.com"))
	b := decodeBody(t, calls.Last())
	b.check(t, testapp.Mara)
	if b.Reference == nil || b.Reference.MessageID != question.ID || b.Reference.FailIfNotExists == nil || *b.Reference.FailIfNotExists {
		t.Errorf("the reference is %+v", b.Reference)
	}
	if b.Nonce != "k1" || !b.EnforceNonce {
		t.Errorf("the nonce is %q, enforced %v", b.Nonce, b.EnforceNonce)
	}
	if err := l.Adapter.Edit(t.Context(), id, l.Post("k1", testapp.Room, question.ID, "hello @everyone")); err != nil {
		t.Fatal(err)
	}
	decodeBody(t, calls.Last()).check(t)
	if raw := string(calls.Last().Body); !strings.Contains(raw, `"components":[]`) {
		t.Errorf("the edit %s keeps the buttons", raw)
	}
	l.SetChannel(discordtest.Channel{ID: testapp.Room, Guild: testapp.Garden, NoHistory: true})
	for _, key := range []string{"k2", "k3"} {
		l.Send(l.Post(key, testapp.Room, question.ID, "hi"))
	}
	if posts := l.Posts(testapp.Room); len(posts) != 3 || posts[2].ReplyTo != "" {
		t.Errorf("without the permission: %+v", posts)
	}
	if n := len(calls.Of(discordtest.Post)); n != 4 {
		t.Errorf("%d calls, want 4: the refusal of references is remembered", n)
	}
	l.Send(l.Post("k4", testapp.Direct, "", "hi"))
	if b := decodeBody(t, calls.Last()); b.Reference != nil {
		t.Error("a post without a question refers to a message")
	}
}

func TestAtMostHundredMentions(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Prepare(t, discordtest.Options{OnCall: calls.Note}, nil)
	var text strings.Builder
	for n := range 130 {
		fmt.Fprintf(&text, "<@%d>", 1000+n)
	}
	l.Send(l.Post("k1", testapp.Room, "", text.String()))
	if b := decodeBody(t, calls.Last()); len(b.AllowedMentions.Users) != 100 {
		t.Errorf("%d users", len(b.AllowedMentions.Users))
	}
}

// TestOnlyMentionsOfTheTurnPing: no form of a token in an answer pings a stranger.
func TestOnlyMentionsOfTheTurnPing(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Prepare(t, discordtest.Options{OnCall: calls.Note}, nil)
	const answer = "<@!999> <@999> `<@!999>` <@\\!999> <@!99&#57;> &lt;@!999>\n```\n<@!999>\n```\n| a |\n|---|\n| <@!999> |\n\n<@201>, <@&7> and <@202>"
	for _, text := range l.Adapter.Format(answer, []string{"<@201>", "<@202>", "<@203>"}) {
		l.Send(l.Post("k1", testapp.Room, "", text))
	}
	decodeBody(t, calls.Last()).check(t, "201", "202")
}

func TestMessagesHave2000Characters(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	if posts := l.Adapter.Format(strings.Repeat("😀", 1990), nil); len(posts) != 1 {
		t.Errorf("1990 emoji are %d posts", len(posts))
	}
	code := "Intro\n\n```go\n" + strings.Repeat("line of code := 1\n", 300) + "```\n"
	for n, post := range l.Adapter.Format(code, nil) {
		if utf8.RuneCountInString(post) > 2000 || strings.Count(post, "```")%2 != 0 {
			t.Errorf("post %d has %d characters and %d fences", n, utf8.RuneCountInString(post), strings.Count(post, "```"))
		}
		l.Send(l.Post(fmt.Sprint("k", n), testapp.Room, "", post))
	}
	table := "| a | b |\n|---|---|\n| one | two |\n"
	if posts := l.Adapter.Format(table, nil); len(posts) != 1 || !strings.HasPrefix(posts[0], "```\na   | b") {
		t.Errorf("a table is %q", posts)
	}
	if posts := l.Adapter.Format("##### deep\n", nil); len(posts) != 1 || !strings.HasPrefix(posts[0], "### deep") {
		t.Errorf("a deep heading is %q", posts)
	}
}

func TestFilesAreUploaded(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	post := l.Post("k1", testapp.Room, "", "see the file")
	post.File = &adapters.File{Name: "reply.md", MimeType: "text/markdown", Size: 7, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("content")), nil
	}}
	l.Send(post)
	l.Send(post) // the nonce holds for files too
	if posts := l.Posts(testapp.Room); len(posts) != 1 || len(posts[0].Files) != 1 || string(posts[0].Files[0].Content) != "content" || posts[0].Files[0].Name != "reply.md" {
		t.Errorf("%+v", posts)
	}
	post.Key, post.File.Size = "k2", 100<<20
	if _, err := l.Adapter.Send(t.Context(), post); err == nil {
		t.Error("a huge file was sent")
	}
}
