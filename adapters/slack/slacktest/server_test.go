package slacktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

const channel = "C0ROOM"

// start starts a fake with a stopped clock, and a client library that is independent of
// Parley.
func start(t *testing.T, options slacktest.Options) (*slacktest.Server, *slack.Client) {
	t.Helper()
	if options.Now == nil {
		options.Now = func() time.Time { return time.Unix(1700000000, 0) }
	}
	server, err := slacktest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server, slack.New(slacktest.Token, slack.OptionAPIURL(server.URL()))
}

func post(t *testing.T, client *slack.Client, text string, options ...slack.MsgOption) string {
	t.Helper()
	_, ts, err := client.PostMessageContext(t.Context(), channel, append(options, slack.MsgOptionText(text, false))...)
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

func texts(messages []slack.Message) (out []string) {
	for _, m := range messages {
		out = append(out, m.Text)
	}
	return out
}

func TestPostGetsNextTimestamp(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	first := post(t, client, "one <&> \"two\"\n")
	second := post(t, client, "reply", slack.MsgOptionTS(first))

	if first != "1700000000.000000" || second != "1700000000.000001" {
		t.Errorf("the timestamps are %s and %s", first, second)
	}
	want := []slacktest.Post{
		{N: 1, Channel: channel, TS: first, User: "U0BOT", BotID: "B0BOT", Text: "one <&> \"two\"\n", At: time.Unix(1700000000, 0)},
		{N: 2, Channel: channel, TS: second, ThreadTS: first, User: "U0BOT", BotID: "B0BOT", Text: "reply", At: time.Unix(1700000000, 0)},
	}
	if diff := cmp.Diff(want, server.Posts()); diff != "" {
		t.Error(diff)
	}
}

func TestPostAsJSON(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	body := `{"channel":"C0ROOM","text":"hi","metadata":{"event_type":"x","event_payload":{"key":"k1"}}}`
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL()+"chat.postMessage", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Authorization", "Bearer "+slacktest.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	posts := server.Posts()
	if len(posts) != 1 || posts[0].Text != "hi" || posts[0].Key() != "k1" {
		t.Errorf("posts: %+v", posts)
	}
}

func TestHistoryOmitsReplies(t *testing.T) {
	_, client := start(t, slacktest.Options{})
	root := post(t, client, "root")
	post(t, client, "reply", slack.MsgOptionTS(root))
	post(t, client, "next")
	post(t, client, "last")

	var got [][]string
	query := slack.GetConversationHistoryParameters{ChannelID: channel, Limit: 2}
	for {
		page, err := client.GetConversationHistoryContext(t.Context(), &query)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, texts(page.Messages))
		if query.Cursor = page.ResponseMetaData.NextCursor; query.Cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([][]string{{"last", "next"}, {"root"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRepliesBeginWithRoot(t *testing.T) {
	_, client := start(t, slacktest.Options{})
	root := post(t, client, "root")
	early := post(t, client, "early", slack.MsgOptionTS(root))
	post(t, client, "elsewhere")
	post(t, client, "late", slack.MsgOptionTS(root))

	got, more, _, err := client.GetConversationRepliesContext(t.Context(),
		&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, Oldest: early})
	if err != nil || more {
		t.Fatal(more, err)
	}
	if diff := cmp.Diff([]string{"root", "late"}, texts(got)); diff != "" {
		t.Error(diff)
	}
}

func TestMetadataInHistory(t *testing.T) {
	_, client := start(t, slacktest.Options{})
	post(t, client, "text", slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "t", EventPayload: map[string]any{"key": "k"}}))
	for _, all := range []bool{false, true} {
		page, err := client.GetConversationHistoryContext(t.Context(),
			&slack.GetConversationHistoryParameters{ChannelID: channel, IncludeAllMetadata: all})
		if err != nil {
			t.Fatal(err)
		}
		if got := page.Messages[0].Metadata.EventPayload["key"] == "k"; got != all {
			t.Errorf("include_all_metadata is %v, and metadata is present: %v", all, got)
		}
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	for token, want := range map[string]string{"": "not_authed", "xoxb-other": "invalid_auth"} {
		_, err := slack.New(token, slack.OptionAPIURL(server.URL())).AuthTestContext(t.Context())
		if err == nil || err.Error() != want {
			t.Errorf("token %q: %v, want %s", token, err, want)
		}
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault slacktest.Fault
		posts int
		want  func(error) bool
	}{
		"rate limit": {slacktest.RateLimited(7 * time.Second), 0, func(err error) bool {
			var limited *slack.RateLimitedError
			return errors.As(err, &limited) && limited.RetryAfter == 7*time.Second
		}},
		"503 before the effect": {slacktest.Fault{Status: 503}, 0, isStatus(503)},
		"500 after the effect":  {slacktest.Fault{Status: 500, Effect: true}, 1, isStatus(500)},
		"cut after the effect":  {slacktest.Fault{Cut: true, Effect: true}, 1, isError(io.EOF)},
		"cut in the answer": {slacktest.Fault{Cut: true, Effect: true, Body: `{"ok":tr`}, 1,
			isError(io.ErrUnexpectedEOF)},
		"refusal": {slacktest.Fault{Error: "is_archived"}, 0, func(err error) bool { return err.Error() == "is_archived" }},
		"latency": {slacktest.Fault{Latency: time.Nanosecond}, 1, func(err error) bool { return err == nil }},
		"late":    {slacktest.Fault{Late: time.Nanosecond}, 1, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := start(t, slacktest.Options{})
			server.Script("chat.postMessage", c.fault)
			_, _, err := client.PostMessageContext(t.Context(), channel, slack.MsgOptionText("x", false))
			if !c.want(err) || len(server.Posts()) != c.posts {
				t.Errorf("the call returned %v, and there are %d posts", err, len(server.Posts()))
			}
			post(t, client, "the next call succeeds")
		})
	}
}

func isStatus(code int) func(error) bool {
	return func(err error) bool {
		var status slack.StatusCodeError
		return errors.As(err, &status) && status.Code == code
	}
}

func isError(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

func TestEffectAfterClientDisconnects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, client := start(t, slacktest.Options{OnCall: func(slacktest.Call) { cancel() }})
	release := make(chan struct{})
	server.Script("chat.postMessage", slacktest.Fault{Hold: release})

	if _, _, err := client.PostMessageContext(ctx, channel, slack.MsgOptionText("late", false)); !errors.Is(err, context.Canceled) {
		t.Fatalf("the call returned %v", err)
	}
	if posts := server.Posts(); len(posts) != 0 {
		t.Fatalf("the call took effect at once: %+v", posts)
	}
	close(release)
	if posts, err := server.Await(t.Context(), 1); err != nil || posts[0].Text != "late" {
		t.Errorf("%+v, %v", posts, err)
	}
}

func TestClientURL(t *testing.T) {
	var clients []string
	server, client := start(t, slacktest.Options{OnCall: func(c slacktest.Call) { clients = append(clients, c.Method+" by "+c.Client) }})
	post(t, client, "no client name")
	post(t, slack.New(slacktest.Token, slack.OptionAPIURL(server.ClientURL("node2"))), "the second")
	if diff := cmp.Diff([]string{"chat.postMessage by ", "chat.postMessage by node2"}, clients); diff != "" {
		t.Error(diff)
	}
	if posts := server.Posts(); len(posts) != 2 {
		t.Errorf("posts: %+v", posts)
	}
}

func TestAwaitReturnsErrorOfContext(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	post(t, client, "only")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if posts, err := server.Await(ctx, 2); len(posts) != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d posts, %v", len(posts), err)
	}
}

func TestMixFollowsSeed(t *testing.T) {
	draw := func(seed uint64) (codes []int) {
		plan := slacktest.Mix(seed, slacktest.Chance{P: 0.3, Fault: slacktest.Fault{Status: 500}},
			slacktest.Chance{P: 0.3, Fault: slacktest.Fault{Status: 429}})
		for range 200 {
			codes = append(codes, plan(slacktest.Call{Method: "chat.postMessage"}).Status)
		}
		return codes
	}
	if cmp.Diff(draw(1), draw(1)) != "" || cmp.Diff(draw(1), draw(2)) == "" {
		t.Error("the faults do not follow the seed")
	}
	counts := map[int]int{}
	for _, code := range draw(1) {
		counts[code]++
	}
	if len(counts) != 3 || counts[0] > 120 {
		t.Errorf("200 calls with probabilities 0.3 and 0.3 had %v", counts)
	}
	if plan := slacktest.Mix(1, slacktest.Chance{P: 1, Fault: slacktest.Fault{Status: 500}}); plan(slacktest.Call{Method: "auth.test"}).Status != 0 {
		t.Error("auth.test has a fault of chat.postMessage")
	}
}

func TestDirectory(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	server.AddUser(slacktest.User{ID: "U1", Name: "ash", RealName: "Ash Ley", DisplayName: "Ash"})
	server.AddChannel(channel, "general")
	user, err := client.GetUserInfoContext(t.Context(), "U1")
	if err != nil || user.Profile.DisplayName != "Ash" || user.RealName != "Ash Ley" {
		t.Errorf("%+v, %v", user, err)
	}
	room, err := client.GetConversationInfoContext(t.Context(), &slack.GetConversationInfoInput{ChannelID: channel})
	if err != nil || room.Name != "general" {
		t.Errorf("%+v, %v", room, err)
	}
	if _, err := client.GetUserInfoContext(t.Context(), "U2"); err == nil || err.Error() != "user_not_found" {
		t.Errorf("an unknown user: error %v", err)
	}
}

func TestDownloadNeedsToken(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	server.AddFile(slacktest.File{ID: "F1", Name: "a b.txt", MimeType: "text/plain", Content: []byte("content")})
	server.AddFile(slacktest.File{ID: "F2", Name: "x.png", MimeType: "image/png", Unreadable: true})
	var content bytes.Buffer
	for id, readable := range map[string]bool{"F1": true, "F2": false} {
		file, _, _, err := client.GetFileInfoContext(t.Context(), id, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.GetFileContext(t.Context(), file.URLPrivateDownload, &content); (err == nil) != readable {
			t.Errorf("file %s: %v", id, err)
		}
	}
	if content.String() != "content" {
		t.Errorf("the content is %q", content.String())
	}
}

// TestSign uses the example in Slack's documentation.
func TestSign(t *testing.T) {
	body := "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V" +
		"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
		"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
		"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	header := slacktest.Sign("8f742231b10e8888abcd99yyyzzz85a5", time.Unix(1531420618, 0), []byte(body))
	const want = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	if got := header.Get("X-Slack-Signature"); got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}

func TestMessageEvent(t *testing.T) {
	message := slacktest.Message{Channel: channel, User: "U1", Text: "<@U0BOT> hi & bye", TS: "1700000000.000100", ThreadTS: "1700000000.000001"}
	got := map[string]any{}
	if err := json.Unmarshal(message.Event(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "event_callback", "team_id": "T0TEAM", "api_app_id": "A0APP",
		"event_id": "EvC0ROOM1700000000.000100", "event_time": 1700000000.0,
		"authorizations": []any{map[string]any{"team_id": "T0TEAM", "user_id": "U0BOT", "is_bot": true}},
		"event": map[string]any{"type": "message", "user": "U1", "text": "<@U0BOT> hi & bye", "team": "T0TEAM",
			"ts": "1700000000.000100", "event_ts": "1700000000.000100", "thread_ts": "1700000000.000001",
			"channel": channel, "channel_type": "channel"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if bytes.Equal(message.Mention(), message.Event()) || !bytes.Contains(message.Mention(), []byte(`"app_mention"`)) {
		t.Errorf("the mention is %s", message.Mention())
	}
}

func BenchmarkPost(b *testing.B) {
	server, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	b.RunParallel(func(pb *testing.PB) {
		for n := 0; pb.Next(); n++ {
			form := "token=" + slacktest.Token + "&channel=C" + strconv.Itoa(n%50) + "&text=hello"
			response, err := client.Post(server.URL()+"chat.postMessage", "application/x-www-form-urlencoded", strings.NewReader(form))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	})
}
