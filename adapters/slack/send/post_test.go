package send_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

func TestSendPostsOnce(t *testing.T) {
	var form url.Values
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) { form = c.Form }})
	reply := testapp.Post("k1")
	reply.Text, reply.To.Place = "a <@U1> & **b**\n", "1699999999.000100"
	id, err := adapter.Send(t.Context(), reply)
	if err != nil || id != testapp.Room+"/1700000000.000000" {
		t.Fatalf("id %q, %v", id, err)
	}
	want := url.Values{
		"token": {slacktest.Token}, "channel": {testapp.Room}, "thread_ts": {"1699999999.000100"},
		"text": {"a <@U1> &amp; *b*"}, "blocks": {`[{"type":"markdown","text":"a \u003c@U1\u003e \u0026 **b**\n"}]`},
		"unfurl_links": {"false"}, "unfurl_media": {"false"},
		"metadata": {`{"event_type":"parley_delivery","event_payload":{"key":"k1"}}`},
	}
	if diff := cmp.Diff(want, form); diff != "" {
		t.Error(diff)
	}
	if posts := server.Posts(); len(posts) != 1 || posts[0].Key() != "k1" {
		t.Errorf("%+v", posts)
	}
}

// TestButtons checks the blocks of a post with buttons, also in a workspace that refuses markdown
// blocks.
func TestButtons(t *testing.T) {
	const actions = `{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"Yes","emoji":false},"action_id":"parley-a","value":"parley-a"},` +
		`{"type":"button","text":{"type":"plain_text","text":"No","emoji":false},"action_id":"parley-b","value":"parley-b"}]}`
	for refuses, above := range map[bool]string{
		false: `{"type":"markdown","text":"May I?"}`, true: `{"type":"section","text":{"type":"mrkdwn","text":"May I?"},"expand":true}`,
	} {
		server, adapter := testapp.Start(t, slacktest.Options{NoMarkdownBlocks: refuses})
		post := testapp.Post("k1")
		post.Text, post.Buttons = "May I?", []adapters.Button{{ID: "parley-a", Label: "Yes"}, {ID: "parley-b", Label: "No"}}
		if _, err := adapter.Send(t.Context(), post); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("["+above+","+actions+"]", string(server.Posts()[0].Blocks)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestTextsHaveNoPreviews checks every call that carries a text of ours outside of a stream.
func TestTextsHaveNoPreviews(t *testing.T) {
	asked := map[string]string{}
	_, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) {
		asked[c.Method] = c.Form.Get("unfurl_links") + " " + c.Form.Get("unfurl_media")
	}})
	post := testapp.Post("k1")
	post.Text, post.Asker = "[x](https://x.y)", "U1"
	id, err := adapter.Send(t.Context(), post)
	if err = errors.Join(err, adapter.Edit(t.Context(), id, post), adapter.PostEphemeral(t.Context(), post)); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"chat.postMessage", "chat.update", "chat.postEphemeral"} {
		if asked[method] != "false false" {
			t.Errorf("%s: %q", method, asked[method])
		}
	}
}

// TestFailureKindOfSend checks the table on which delivery relies. Delivery repeats a
// NotSent post at once, so such a call must have had no effect.
func TestFailureKindOfSend(t *testing.T) {
	limited := func(header string) slacktest.Fault { return slacktest.Fault{Status: 429, RetryAfter: header} }
	for name, c := range map[string]struct {
		fault slacktest.Fault
		want  adapters.SendFailure
		after time.Duration
	}{
		"429":                         {limited("7"), adapters.RateLimited, 7 * time.Second},
		"429 without a time":          {limited(""), adapters.RateLimited, time.Second},
		"429 with a zero":             {limited("0"), adapters.RateLimited, time.Second},
		"429 with a negative time":    {limited("-5"), adapters.RateLimited, time.Second},
		"429 with text":               {limited("soon"), adapters.RateLimited, time.Second},
		"429 with a century":          {limited("3155760000"), adapters.RateLimited, 10 * time.Minute},
		"ratelimited with status 200": {slacktest.Fault{Error: "ratelimited"}, adapters.RateLimited, time.Second},
		"rate_limited":                {slacktest.Fault{Error: "rate_limited"}, adapters.RateLimited, time.Second},

		"500":                   {slacktest.Fault{Status: 500, Effect: true}, adapters.Unclear, 0},
		"503":                   {slacktest.Fault{Status: 503}, adapters.Unclear, 0},
		"408":                   {slacktest.Fault{Status: 408}, adapters.Unclear, 0},
		"cut before the answer": {slacktest.Fault{Cut: true, Effect: true}, adapters.Unclear, 0},
		"cut in the answer":     {slacktest.Fault{Cut: true, Effect: true, Body: `{"ok":true,"ts":"1`}, adapters.Unclear, 0},
		"an answer of HTML":     {slacktest.Fault{Body: "<html>", Effect: true}, adapters.Unclear, 0},
		"an answer of nothing":  {slacktest.Fault{Body: "{}", Effect: true}, adapters.Unclear, 0},
		"ok without a ts":       {slacktest.Fault{Body: `{"ok":true,"channel":"C0ROOM"}`, Effect: true}, adapters.Unclear, 0},
		"fatal_error":           {slacktest.Fault{Error: "fatal_error", Effect: true}, adapters.Unclear, 0},
		"internal_error":        {slacktest.Fault{Error: "internal_error"}, adapters.Unclear, 0},
		"service_unavailable":   {slacktest.Fault{Error: "service_unavailable"}, adapters.Unclear, 0},

		"404 of a wrong address": {slacktest.Fault{Status: 404}, adapters.NotSent, 0},
		"407 of a proxy":         {slacktest.Fault{Status: 407}, adapters.NotSent, 0},
		"a moving workspace":     {slacktest.Fault{Error: "team_added_to_org"}, adapters.NotSent, 0},
		"a wrong token":          {slacktest.Fault{Error: "invalid_auth"}, adapters.NotSent, 0},
		"a revoked token":        {slacktest.Fault{Error: "token_revoked"}, adapters.NotSent, 0},
		"413":                    {slacktest.Fault{Status: 413}, adapters.Permanent, 0},
		"channel_not_found":      {slacktest.Fault{Error: "channel_not_found"}, adapters.Permanent, 0},
		"not_in_channel":         {slacktest.Fault{Error: "not_in_channel"}, adapters.Permanent, 0},
		"is_archived":            {slacktest.Fault{Error: "is_archived"}, adapters.Permanent, 0},
		"msg_too_long":           {slacktest.Fault{Error: "msg_too_long"}, adapters.Permanent, 0},
		"no_text":                {slacktest.Fault{Error: "no_text"}, adapters.Permanent, 0},
		"restricted_action":      {slacktest.Fault{Error: "restricted_action"}, adapters.Permanent, 0},
		"an unknown refusal":     {slacktest.Fault{Error: "new_in_2031"}, adapters.Permanent, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server, adapter := testapp.Start(t, slacktest.Options{})
			server.Script("chat.postMessage", c.fault)
			_, err := adapter.Send(t.Context(), testapp.Post("k1"))
			got := testapp.Failure(t, err)
			if got.Failure != c.want || got.RetryAfter != c.after {
				t.Errorf("failure %d after %v, want %d after %v: %v", got.Failure, got.RetryAfter, c.want, c.after, err)
			}
			if posts := server.Posts(); len(posts) > 1 || (len(posts) == 1 && got.Failure != adapters.Unclear) {
				t.Errorf("%d posts took effect", len(posts))
			}
			if !strings.Contains(err.Error(), testapp.Room) {
				t.Errorf("the error does not name the channel: %v", err)
			}
			if _, err := adapter.Send(t.Context(), testapp.Post("k2")); err != nil {
				t.Errorf("the next post: %v", err)
			}
		})
	}
}

// lateContext is a context that has ended without closing its Done channel, as any
// context is for a moment.
type lateContext struct {
	context.Context
	ended atomic.Bool
}

func (e *lateContext) Done() <-chan struct{} { return nil }

func (e *lateContext) Err() error {
	if e.ended.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

// TestSendUsesNoConnectionAfterTheDeadline ends the context during the connect. A node
// that asks Slack after the deadline relies on the absence of later writes.
func TestSendUsesNoConnectionAfterTheDeadline(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(slacktest.Call) { t.Error("the request was written") }})
	ctx := &lateContext{Context: t.Context()}
	adapter.Client.Transport.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
		connection, err := new(net.Dialer).DialContext(t.Context(), network, address)
		ctx.ended.Store(true)
		return connection, err
	}
	if _, err := adapter.Send(ctx, testapp.Post("k")); testapp.Failure(t, err).Failure != adapters.NotSent {
		t.Errorf("%v", err)
	}
	_ = server.Close()
}

// TestTimeoutAfterTheRequestIsUnclear ends the context when Slack has read the request.
// The message then appears late, and Find finds it.
func TestTimeoutAfterTheRequestIsUnclear(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "chat.postMessage" {
			cancel()
		}
	}})
	release := make(chan struct{})
	server.Script("chat.postMessage", slacktest.Fault{Hold: release})
	if _, err := adapter.Send(ctx, testapp.Post("k1")); testapp.Failure(t, err).Failure != adapters.Unclear {
		t.Fatalf("%v", err)
	}
	if _, found, err := adapter.Find(t.Context(), testapp.Post("k1")); found || err != nil {
		t.Fatalf("found before it took effect: %v, %v", found, err)
	}
	close(release)
	if _, err := server.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	id, found, err := adapter.Find(t.Context(), testapp.Post("k1"))
	if id != testapp.Room+"/1700000000.000000" || !found || err != nil {
		t.Errorf("id %q, found %v, %v", id, found, err)
	}
}

// TestSendFollowsNoRedirect: a client that follows a 307 repeats the body, which
// contains the token.
func TestSendFollowsNoRedirect(t *testing.T) {
	var requests atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer elsewhere.Close()
	api := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer api.Close()
	_, err := slack.New("acme", testapp.Config(api.URL)).Send(t.Context(), testapp.Post("k1"))
	if testapp.Failure(t, err).Failure != adapters.NotSent || requests.Load() != 0 {
		t.Errorf("%v, %d requests elsewhere", err, requests.Load())
	}
}

func TestAddress(t *testing.T) {
	adapter := slack.New("acme", testapp.Config("http://127.0.0.1:1/"))
	got, err := adapter.Address("slack:acme:C0ROOM:1700000000.000100", testapp.Room+"/1700000009.000100")
	if want := (adapters.Address{Channel: testapp.Room, Place: "1700000000.000100"}); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = adapter.Address("slack:acme:D0IM", "")
	if want := (adapters.Address{Channel: "D0IM"}); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := adapter.Address("discord:acme:1", ""); err == nil {
		t.Error("another platform's thread has an address")
	}
}

func TestFormatKeepsSlacksLimit(t *testing.T) {
	adapter := slack.New("acme", testapp.Config("http://127.0.0.1:1/"))
	source := "**Hi** <@U1> <@U2> <!channel> " + strings.Repeat("& ", 15000)
	parts := adapter.Format(source, []string{"<@U1>"})
	if !strings.HasPrefix(parts[0], "**Hi** <@U1> <\u200b@U2> <\u200b!channel> & & &") {
		t.Errorf("%.80q", parts[0])
	}
	for _, part := range parts {
		if len(part) > 11_600 {
			t.Errorf("%d characters", len(part))
		}
	}
	if got := strings.ReplaceAll(strings.Join(parts, ""), "\u200b", ""); got != source || len(parts) != 3 {
		t.Errorf("%d posts, %d of %d characters", len(parts), len(got), len(source))
	}
}

func BenchmarkSend(b *testing.B) {
	server, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	adapter := slack.New("acme", testapp.Config(server.URL()))
	message := testapp.Post("k1")
	b.ReportAllocs()
	b.Run("send", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := adapter.Send(b.Context(), message); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare form", func(b *testing.B) {
		form := url.Values{"token": {slacktest.Token}, "channel": {testapp.Room}, "text": {"hello"}}
		b.ReportAllocs()
		for b.Loop() {
			response, err := http.PostForm(server.URL()+"chat.postMessage", form)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = response.Body.Read(make([]byte, 4096))
			_ = response.Body.Close()
		}
	})
}
