package send_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

// replyIn stores a root in the room and returns a post that replies to it.
func replyIn(server *slacktest.Server, text string) adapters.Post {
	root := server.Put(slacktest.Post{Channel: testapp.Room, User: "U1", Text: "question"})
	reply := testapp.Post("k1")
	reply.To.Place, reply.Asker, reply.Text = root.TS, "U1", text
	return reply
}

// shown returns the visible text of a message; empty if there is no such message.
func shown(server *slacktest.Server, id string) string {
	channel, ts, _ := strings.Cut(id, "/")
	message, _ := server.Message(channel, ts)
	return message.Shown()
}

// fixture is a fake Slack in which each of our calls would succeed.
type fixture struct {
	server  *slacktest.Server
	adapter *slack.Adapter
	post    adapters.Post
	message string // id of a message of ours
	stream  string // id of an open stream of ours
	sign    adapters.Sign
}

// calls are all calls that write, each with its method.
var calls = map[string]struct {
	method string
	call   func(context.Context, fixture) error
}{
	"send": {"chat.postMessage", func(ctx context.Context, s fixture) error {
		_, err := s.adapter.Send(ctx, s.post)
		return err
	}},
	"edit":   {"chat.update", func(ctx context.Context, s fixture) error { return s.adapter.Edit(ctx, s.message, s.post) }},
	"remove": {"chat.delete", func(ctx context.Context, s fixture) error { return s.adapter.Remove(ctx, s.message, s.post) }},
	"begin": {"chat.startStream", func(ctx context.Context, s fixture) error {
		_, err := s.adapter.Begin(ctx, s.post)
		return err
	}},
	"append":   {"chat.appendStream", func(ctx context.Context, s fixture) error { return s.adapter.Append(ctx, s.stream, s.post, "x") }},
	"end":      {"chat.stopStream", func(ctx context.Context, s fixture) error { return s.adapter.End(ctx, s.stream, s.post, "x") }},
	"stop":     {"chat.stopStream", func(ctx context.Context, s fixture) error { return s.adapter.Edit(ctx, s.stream, s.post) }},
	"tell":     {"chat.postEphemeral", func(ctx context.Context, s fixture) error { return s.adapter.PostEphemeral(ctx, s.post) }},
	"sign":     {"assistant.threads.setStatus", func(ctx context.Context, s fixture) error { return s.adapter.ShowWorking(ctx, s.sign) }},
	"unsign":   {"assistant.threads.setStatus", func(ctx context.Context, s fixture) error { return s.adapter.ClearWorking(ctx, s.sign) }},
	"share":    {"files.completeUploadExternal", sendsFile},
	"announce": {"files.getUploadURLExternal", sendsFile},
	"upload":   {"files.upload", sendsFile},
}

func sendsFile(ctx context.Context, s fixture) error {
	s.post.File = file("a.txt", "content")
	_, err := s.adapter.Send(ctx, s.post)
	return err
}

func file(name, content string) *adapters.File {
	return &adapters.File{Name: name, MimeType: "text/plain", Size: int64(len(content)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	server, adapter := testapp.Start(t, slacktest.Options{})
	s := fixture{server: server, adapter: adapter, post: replyIn(server, "hello")}
	s.sign = adapters.Sign{To: s.post.To, Message: testapp.Room + "/" + s.post.To.Place}
	var err error
	if s.message, err = adapter.Send(t.Context(), s.post); err != nil {
		t.Fatal(err)
	}
	if s.stream, err = adapter.Begin(t.Context(), s.post); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFailureKindOfEveryCall checks the kind of each failure; TestFailureKindOfSend has
// the full table for Send. A call whose effect is invisible before a later call is
// NotSent.
func TestFailureKindOfEveryCall(t *testing.T) {
	for name, c := range calls {
		for fault, f := range map[string]struct {
			fault slacktest.Fault
			want  adapters.SendFailure
			after time.Duration
		}{
			"429":               {slacktest.RateLimited(7 * time.Second), adapters.RateLimited, 7 * time.Second},
			"503, late effect":  {slacktest.Fault{Status: 503, Effect: true}, adapters.Unclear, 0},
			"cut, late effect":  {slacktest.Fault{Cut: true, Effect: true}, adapters.Unclear, 0},
			"internal_error":    {slacktest.Fault{Error: "internal_error"}, adapters.Unclear, 0},
			"ratelimited":       {slacktest.Fault{Error: "ratelimited"}, adapters.RateLimited, time.Second},
			"team_added_to_org": {slacktest.Fault{Error: "team_added_to_org"}, adapters.NotSent, 0},
			"is_archived":       {slacktest.Fault{Error: "is_archived"}, adapters.Permanent, 0},
			"new_in_2031":       {slacktest.Fault{Error: "new_in_2031"}, adapters.Permanent, 0},
		} {
			if f.fault.Error != "" && (name == "upload" || name == "stop" && f.want == adapters.Permanent) {
				continue // an upload has no codes; the call after a stop reports its permanent refusals
			}
			if f.want == adapters.Unclear && (name == "announce" || name == "upload") {
				f.want = adapters.NotSent
			}
			s := newFixture(t)
			s.server.Script(c.method, f.fault)
			got := testapp.Failure(t, c.call(t.Context(), s))
			if got.Failure != f.want || got.RetryAfter != f.after || !strings.Contains(got.Error(), testapp.Room) {
				t.Errorf("%s, %s: failure %d after %v, want %d after %v: %v", name, fault, got.Failure, got.RetryAfter, f.want, f.after, got)
			}
		}
	}
}

// TestALimitedMethodRests proves that after a 429 the adapter refuses further calls of the
// method without a request, in every channel, and makes the calls of every other method. So
// does the adapter of a reload.
func TestALimitedMethodRests(t *testing.T) {
	for name, c := range calls {
		if name == "upload" || c.method == "chat.postMessage" {
			continue // an upload has its own address; a post has the scope of its channel
		}
		s := newFixture(t)
		s.server.Script(c.method, slacktest.RateLimited(time.Hour), slacktest.Fault{Error: "called_again"})
		for range 2 {
			got := testapp.Failure(t, c.call(t.Context(), s))
			if got.Failure != adapters.RateLimited || got.Scope != adapters.ScopeMethod || got.RetryAfter > 10*time.Minute || got.RetryAfter < 9*time.Minute {
				t.Errorf("%s: %+v", name, got)
			}
			before := s.adapter
			s.adapter = testapp.New(s.server.URL())
			s.adapter.Inherit(before)
		}
		if _, err := s.adapter.Send(t.Context(), s.post); err != nil {
			t.Errorf("a post during the rest of %s: %v", c.method, err)
		}
	}
}

// TestALimitedPostRestsNoMethod proves that a 429 of a post concerns its channel, so that the
// next post makes a request.
func TestALimitedPostRestsNoMethod(t *testing.T) {
	for name, fault := range map[string]slacktest.Fault{"429": slacktest.RateLimited(time.Hour), "ratelimited": {Error: "ratelimited"}} {
		s := newFixture(t)
		s.server.Script("chat.postMessage", fault)
		_, err := s.adapter.Send(t.Context(), s.post)
		if got := testapp.Failure(t, err); got.Failure != adapters.RateLimited || got.Scope != adapters.ScopeChannel {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := s.adapter.Send(t.Context(), testapp.Post("k2")); err != nil {
			t.Errorf("%s: the next post: %v", name, err)
		}
	}
}
