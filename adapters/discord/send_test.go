package discord_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// post returns a post that answers a message in a channel.
func (l *live) post(key, channel, answered, text string) adapters.Post {
	l.t.Helper()
	to, err := l.adapter.Address(payload.ThreadKey("acme", channel), answered)
	if err != nil {
		l.t.Fatal(err)
	}
	return adapters.Post{Key: key, To: to, Text: text, NotBefore: time.Now()}
}

func (l *live) send(post adapters.Post) string {
	l.t.Helper()
	id, err := l.adapter.Send(l.t.Context(), post)
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

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

// calls records the calls of a fake. They may come concurrently.
type calls struct {
	mu  sync.Mutex
	all []discordtest.Call
}

func (c *calls) note(call discordtest.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, call)
}

// of returns the calls of a route.
func (c *calls) of(route string) []discordtest.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.all), func(call discordtest.Call) bool { return call.Route != route })
}

// last returns the last call.
func (c *calls) last() discordtest.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[len(c.all)-1]
}

func decodeBody(t *testing.T, c discordtest.Call) (b sentBody) {
	t.Helper()
	if err := json.Unmarshal(c.Body, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPostsReferToTheQuestion(t *testing.T) {
	var calls calls
	l := prepareLive(t, discordtest.Options{OnCall: calls.note}, nil)
	question := l.say(roomID, "a question")
	id := l.send(l.post("k1", roomID, question.ID, "hi <@"+mara+">, see https://example.com"))
	b := decodeBody(t, calls.last())
	b.check(t, mara)
	if b.Reference == nil || b.Reference.MessageID != question.ID || b.Reference.FailIfNotExists == nil || *b.Reference.FailIfNotExists {
		t.Errorf("the reference is %+v", b.Reference)
	}
	if b.Nonce != "k1" || !b.EnforceNonce {
		t.Errorf("the nonce is %q, enforced %v", b.Nonce, b.EnforceNonce)
	}
	if err := l.adapter.Edit(t.Context(), id, l.post("k1", roomID, question.ID, "hello @everyone")); err != nil {
		t.Fatal(err)
	}
	decodeBody(t, calls.last()).check(t)
	if raw := string(calls.last().Body); !strings.Contains(raw, `"components":[]`) {
		t.Errorf("the edit %s keeps the buttons", raw)
	}
	l.SetChannel(discordtest.Channel{ID: roomID, Guild: gardenID, NoHistory: true})
	for _, key := range []string{"k2", "k3"} {
		l.send(l.post(key, roomID, question.ID, "hi"))
	}
	if posts := l.Posts(roomID); len(posts) != 3 || posts[2].ReplyTo != "" {
		t.Errorf("without the permission: %+v", posts)
	}
	if n := len(calls.of(discordtest.Post)); n != 4 {
		t.Errorf("%d calls, want 4: the refusal of references is remembered", n)
	}
	l.send(l.post("k4", directID, "", "hi"))
	if b := decodeBody(t, calls.last()); b.Reference != nil {
		t.Error("a post without a question refers to a message")
	}
}

func TestAtMostHundredMentions(t *testing.T) {
	var calls calls
	l := prepareLive(t, discordtest.Options{OnCall: calls.note}, nil)
	var text strings.Builder
	for n := range 130 {
		fmt.Fprintf(&text, "<@%d>", 1000+n)
	}
	l.send(l.post("k1", roomID, "", text.String()))
	if b := decodeBody(t, calls.last()); len(b.AllowedMentions.Users) != 100 {
		t.Errorf("%d users", len(b.AllowedMentions.Users))
	}
}

// TestOnlyMentionsOfTheTurnPing: no form of a token in an answer pings a stranger.
func TestOnlyMentionsOfTheTurnPing(t *testing.T) {
	var calls calls
	l := prepareLive(t, discordtest.Options{OnCall: calls.note}, nil)
	const answer = "<@!999> <@999> `<@!999>` <@\\!999> <@!99&#57;> &lt;@!999>\n```\n<@!999>\n```\n| a |\n|---|\n| <@!999> |\n\n<@201>, <@&7> and <@202>"
	for _, text := range l.adapter.Format(answer, []string{"<@201>", "<@202>", "<@203>"}) {
		l.send(l.post("k1", roomID, "", text))
	}
	decodeBody(t, calls.last()).check(t, "201", "202")
}

func TestUnclearPostIsSettledByItsNonce(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	now := time.Now()
	for n, late := range []bool{true, false} {
		post := l.post(fmt.Sprint("k", n), roomID, "", "the same words")
		l.Script(discordtest.Post, discordtest.Fault{Cut: true, Effect: late})
		if _, err := l.adapter.Send(t.Context(), post); err == nil {
			t.Fatal("the call succeeded")
		}
		id, found, err := l.adapter.Find(t.Context(), post)
		if err != nil || found != late {
			t.Errorf("Find returns %q, %v, %v", id, found, err)
		}
		if again := l.send(post); late && again != id {
			t.Errorf("the second call returned %s, the event %s", again, id)
		}
	}
	if posts := l.Posts(roomID); len(posts) != 2 {
		t.Errorf("%d posts", len(posts))
	}
	// Another node, or this one after a restart, knows no nonce. After some minutes it compares texts.
	post := l.post("k9", roomID, "", "the same words")
	for _, c := range []struct {
		key  string
		want int // posts
	}{{"k0", 2}, {"k1", 2}, {"k9", 3}} {
		post.Key = c.key
		other := newAdapter(l.Server, nil)
		id, found, err := other.Find(t.Context(), post)
		if posts := l.Posts(roomID); !found || err != nil || len(posts) != c.want || !slices.ContainsFunc(posts, func(m discordtest.Message) bool { return m.ID == id && m.Nonce == c.key }) {
			t.Errorf("%s, while the nonce is enforced: %q, %v, %v, %d posts", c.key, id, found, err, len(posts))
		}
	}
	other := newAdapter(l.Server, nil)
	other.SetClock(func() time.Time { return now.Add(10 * time.Minute) })
	var alike []string
	for _, m := range l.Posts(roomID) {
		alike = append(alike, m.ID)
	}
	if id, found, err := other.Find(t.Context(), post); found || err != nil {
		t.Errorf("later, Find returns %q, %v, %v", id, found, err)
	}
	if ids, err := other.List(t.Context(), post); !slices.Equal(ids, alike) || err != nil {
		t.Errorf("later, List returns %q, %v; want %q", ids, err, alike)
	}
	post.Text = "other words"
	if ids, err := other.List(t.Context(), post); len(ids) > 0 || err != nil {
		t.Errorf("another text: %q, %v", ids, err)
	}
	l.Script(discordtest.Read, discordtest.Fault{Status: http.StatusServiceUnavailable})
	if _, err := other.List(t.Context(), post); err == nil {
		t.Error("a failed read is no error")
	}
}

// TestASearchReadsNotTheWholeChannel checks that the search for a post ends some time behind the first
// post that looks like it, however many messages follow.
func TestASearchReadsNotTheWholeChannel(t *testing.T) {
	var calls calls
	var ahead atomic.Int64 // of the clock, in seconds
	l := prepareLive(t, discordtest.Options{OnCall: calls.note, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }}, nil)
	post := l.post("k1", roomID, "", "the words")
	id := l.send(post)
	for n := range 250 {
		ahead.Add(10)
		l.say(roomID, fmt.Sprint(n))
	}
	if ids, err := l.adapter.List(t.Context(), post); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("List returns %q, %v", ids, err)
	}
	if n := len(calls.of(discordtest.Read)); n != 1 {
		t.Errorf("%d reads of pages", n)
	}
}

func TestHeadersSetThePace(t *testing.T) {
	var calls calls
	l := prepareLive(t, discordtest.Options{OnCall: calls.note, PostLimit: 2, PostPer: time.Minute}, nil)
	for n := range 2 {
		l.send(l.post(fmt.Sprint("k", n), roomID, "", "hi"))
	}
	_, err := l.adapter.Send(t.Context(), l.post("k3", roomID, "", "hi"))
	failure, ok := err.(*adapters.SendError)
	if !ok || failure.Failure != adapters.RateLimited || failure.Scope != adapters.ScopeChannel || failure.RetryAfter <= 0 || failure.RetryAfter > time.Minute {
		t.Errorf("the third call: %v", err)
	}
	if n := len(calls.of(discordtest.Post)); n != 2 {
		t.Errorf("%d calls reached Discord, want 2", n)
	}
	l.send(l.post("k4", directID, "", "hi")) // another channel has its own limit
}

func TestGlobalLimitStopsEverything(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	l.Script(discordtest.Post, discordtest.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute, Scope: "global"})
	for range 2 {
		_, err := l.adapter.Send(t.Context(), l.post("k1", roomID, "", "hi"))
		if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.RateLimited {
			t.Errorf("got %v", err)
		}
	}
	if _, err := l.adapter.LookupUser(t.Context(), mara); err == nil {
		t.Error("another call was made")
	}
}

// TestAProxysAnswerIsNoRefusal checks that a post and a read that a proxy before Discord refuses are
// tried again, unless the post is too large for the proxy. A success that is not Discord's is unclear.
func TestAProxysAnswerIsNoRefusal(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	for status, want := range map[int]adapters.SendFailure{
		http.StatusForbidden: adapters.NotSent, http.StatusUnauthorized: adapters.NotSent, http.StatusRequestEntityTooLarge: adapters.Permanent,
		http.StatusNonAuthoritativeInfo: adapters.Unclear,
	} {
		l.Script(discordtest.Post, discordtest.Fault{Status: status})
		_, err := l.adapter.Send(t.Context(), l.post("k1", roomID, "", "hi"))
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != want {
			t.Errorf("%d: %v", status, err)
		}
	}
	l.Script(discordtest.Read, discordtest.Fault{Status: http.StatusForbidden})
	_, err := l.adapter.ReadChannel(t.Context(), adapters.Reading{Gap: event.Gap{Channel: roomID, Until: time.Now()}, Messages: 10})
	if _, refused := errors.AsType[*adapters.RefusedError](err); err == nil || refused {
		t.Errorf("the read returns %v", err)
	}
}

func TestMessagesHave2000Characters(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	if posts := l.adapter.Format(strings.Repeat("😀", 1990), nil); len(posts) != 1 {
		t.Errorf("1990 emoji are %d posts", len(posts))
	}
	code := "Intro\n\n```go\n" + strings.Repeat("line of code := 1\n", 300) + "```\n"
	for n, post := range l.adapter.Format(code, nil) {
		if utf8.RuneCountInString(post) > 2000 || strings.Count(post, "```")%2 != 0 {
			t.Errorf("post %d has %d characters and %d fences", n, utf8.RuneCountInString(post), strings.Count(post, "```"))
		}
		l.send(l.post(fmt.Sprint("k", n), roomID, "", post))
	}
	table := "| a | b |\n|---|---|\n| one | two |\n"
	if posts := l.adapter.Format(table, nil); len(posts) != 1 || !strings.HasPrefix(posts[0], "```\na   | b") {
		t.Errorf("a table is %q", posts)
	}
	if posts := l.adapter.Format("##### deep\n", nil); len(posts) != 1 || !strings.HasPrefix(posts[0], "### deep") {
		t.Errorf("a deep heading is %q", posts)
	}
}

func TestTypingIsKeptAlive(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	if every := l.adapter.Limits().SignEvery; every <= 0 || every >= 10*time.Second {
		t.Errorf("the sign is shown every %v; Discord shows it for 10 s", every)
	}
	sign := adapters.Sign{To: adapters.Address{Channel: roomID}, Message: "1"}
	for range 2 {
		if err := l.adapter.ShowWorking(t.Context(), sign); err != nil {
			t.Error(err)
		}
	}
	if n := l.TypingCalls(roomID); n != 2 {
		t.Errorf("%d calls", n)
	}
	if err := l.adapter.ClearWorking(t.Context(), sign); err != nil {
		t.Error(err)
	}
}

func TestFilesAreUploaded(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	post := l.post("k1", roomID, "", "see the file")
	post.File = &adapters.File{Name: "reply.md", MimeType: "text/markdown", Size: 7, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("content")), nil
	}}
	l.send(post)
	l.send(post) // the nonce holds for files too
	if posts := l.Posts(roomID); len(posts) != 1 || len(posts[0].Files) != 1 || string(posts[0].Files[0].Content) != "content" || posts[0].Files[0].Name != "reply.md" {
		t.Errorf("%+v", posts)
	}
	post.Key, post.File.Size = "k2", 100<<20
	if _, err := l.adapter.Send(t.Context(), post); err == nil {
		t.Error("a huge file was sent")
	}
}

// TestQuestionGetsItsOwnThread checks auto_thread: the thread's key is the question's id, the
// first post opens the thread, and later messages there continue it.
func TestQuestionGetsItsOwnThread(t *testing.T) {
	l := startLive(t, discordtest.Options{}, func(c *discord.Config) { c.AutoThread = true })
	question := l.say(roomID, "<@"+discordtest.BotUser+"> a question")
	l.say(roomID, "not a question")
	l.await(2)
	var threads []event.ThreadKey
	for _, e := range l.envelopes() {
		got, err := l.adapter.Normalize(t.Context(), e, l.directory())
		if err != nil {
			t.Fatal(err)
		}
		keys := l.adapter.Keys(e, l.directory())
		if got.Message.Thread != keys.Thread {
			t.Errorf("Keys returns thread %s, Normalize thread %s", keys.Thread, got.Message.Thread)
		}
		threads = append(threads, keys.Thread)
	}
	if want := []event.ThreadKey{payload.ThreadKey("acme", question.ID), payload.ThreadKey("acme", roomID)}; !slices.Equal(threads, want) {
		t.Errorf("the threads are %q, want %q", threads, want)
	}
	l.send(l.post("k1", question.ID, question.ID, "an answer"))
	l.send(l.post("k2", question.ID, question.ID, "more"))
	if posts := l.Posts(question.ID); len(posts) != 2 {
		t.Errorf("the thread has %d posts", len(posts))
	}
	follow := l.say(question.ID, "thanks")
	l.await(3)
	for _, e := range l.envelopes() {
		if keys := l.adapter.Keys(e, l.directory()); keys.MessageID == follow.ID && keys.Thread != payload.ThreadKey("acme", question.ID) {
			t.Errorf("a later message has the keys %+v", keys)
		}
	}
}

// TestAThreadThatDiscordRefuses checks that the answer then comes in the question's channel. There
// the adapter finds, edits and removes it, also after a restart.
func TestAThreadThatDiscordRefuses(t *testing.T) {
	var calls calls
	l := startLive(t, discordtest.Options{OnCall: calls.note}, func(c *discord.Config) { c.AutoThread = true })
	l.SetChannel(discordtest.Channel{ID: roomID, Guild: gardenID, Name: "lounge", Type: discordtest.Voice})
	question := l.say(roomID, "<@"+discordtest.BotUser+"> a question")
	l.await(1)
	first, second := l.post("k1", question.ID, question.ID, "an answer"), l.post("k2", question.ID, question.ID, "more")
	id := l.send(first)
	l.adapter = newAdapter(l.Server, func(c *discord.Config) { c.AutoThread = true })
	l.adapter.UseState(l.state)
	l.send(second)
	if posts := l.Posts(roomID); len(posts) != 2 || posts[0].ReplyTo != question.ID {
		t.Fatalf("the channel has the posts %+v", posts)
	}
	if opens := calls.of(discordtest.OpenThread); len(opens) != 1 {
		t.Errorf("%d calls for a thread", len(opens))
	}
	if ids, err := l.adapter.List(t.Context(), first); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("the search finds %q, %v", ids, err)
	}
	first.Text = "another answer"
	if err := errors.Join(l.adapter.Edit(t.Context(), id, first), l.adapter.Remove(t.Context(), l.Posts(roomID)[1].ID, second)); err != nil {
		t.Error(err)
	}
	if posts := l.Posts(roomID); len(posts) != 1 || posts[0].Content != first.Text {
		t.Errorf("after an edit and a delete, the posts are %+v", posts)
	}
}

// TestThreadNamesKeepGraphemes: the name of a thread ends behind a grapheme.
func TestThreadNamesKeepGraphemes(t *testing.T) {
	var calls calls
	l := startLive(t, discordtest.Options{OnCall: calls.note}, func(c *discord.Config) { c.AutoThread = true })
	question := l.say(roomID, "<@"+discordtest.BotUser+"> a question")
	l.await(1)
	l.send(l.post("k1", question.ID, question.ID, strings.Repeat("a", 76)+"👩\u200d👩\u200d👧\u200d👦 and more"))
	if body := string(calls.of(discordtest.OpenThread)[0].Body); !strings.Contains(body, strings.Repeat("a", 76)+"…") {
		t.Errorf("the thread is opened as %s", body)
	}
}

// TestThreadsAreTurnedOff: an open question is still answered in a thread of its own, and a new one in
// its channel.
func TestThreadsAreTurnedOff(t *testing.T) {
	l := startLive(t, discordtest.Options{}, func(c *discord.Config) { c.AutoThread = true })
	question := l.say(roomID, "<@"+discordtest.BotUser+"> a question")
	l.await(1)
	l.adapter = newAdapter(l.Server, func(c *discord.Config) { c.Working = discord.WorkingReaction })
	l.adapter.UseState(l.state)
	post := l.post("k1", question.ID, question.ID, "an answer")
	if err := l.adapter.ShowWorking(t.Context(), adapters.Sign{To: post.To, Message: question.ID}); err != nil || l.Reactions(roomID, question.ID) != 1 {
		t.Errorf("the sign: %v, %d reactions", err, l.Reactions(roomID, question.ID))
	}
	l.send(post)
	if posts := l.Posts(question.ID); len(posts) != 1 {
		t.Errorf("the question's thread has the posts %+v", posts)
	}
	next := l.say(roomID, "<@"+discordtest.BotUser+"> another question")
	l.await(2)
	for _, e := range l.envelopes() {
		if keys := l.adapter.Keys(e, l.directory()); keys.MessageID == next.ID && keys.Thread != payload.ThreadKey("acme", roomID) {
			t.Errorf("a new question has the keys %+v", keys)
		}
	}
}

// TestAThreadThatIsNotOpenYet checks the calls about a question before the first answer opens its
// thread: the sign of work, the search for a post, and the opening itself.
func TestAThreadThatIsNotOpenYet(t *testing.T) {
	l := startLive(t, discordtest.Options{}, func(c *discord.Config) { c.AutoThread, c.Working = true, discord.WorkingReaction })
	typing := newAdapter(l.Server, func(c *discord.Config) { c.AutoThread = true })
	typing.UseState(l.state)
	question := l.say(roomID, "<@"+discordtest.BotUser+"> a question")
	l.await(1)
	post := l.post("k1", question.ID, question.ID, "an answer")
	sign := adapters.Sign{To: post.To, Message: question.ID}
	if err := errors.Join(l.adapter.ShowWorking(t.Context(), sign), typing.ShowWorking(t.Context(), sign)); err != nil || l.Reactions(roomID, question.ID) != 1 {
		t.Errorf("the sign: %v, %d reactions", err, l.Reactions(roomID, question.ID))
	}
	if _, found, err := l.adapter.Find(t.Context(), post); found || err != nil {
		t.Errorf("the search: %v, %v", found, err)
	}
	l.Script(discordtest.OpenThread, discordtest.Fault{Status: 503}, discordtest.Fault{Status: 400, Code: 160004, Effect: true})
	_, err := l.adapter.Send(t.Context(), post)
	if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.NotSent {
		t.Errorf("an unclear opening: %v", err)
	}
	l.send(post) // another node has opened the thread
	if posts := l.Posts(question.ID); len(posts) != 1 || posts[0].ReplyTo != "" {
		t.Errorf("the posts are %+v", posts)
	}
	l.Change(roomID, question.ID, "<@"+discordtest.BotUser+"> another question")
	l.say(roomID, "bye")
	l.await(3)
	for _, e := range l.envelopes() {
		if keys := l.adapter.Keys(e, l.directory()); keys.Kind == event.KindEdit && keys.Thread != "" {
			t.Errorf("an edit names the thread %s", keys.Thread)
		}
	}
}
