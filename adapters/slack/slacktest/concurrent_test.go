package slacktest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

// TestConcurrentCalls checks the sums of concurrent calls. It is also for the race detector.
func TestConcurrentCalls(t *testing.T) {
	var posts, changes, events atomic.Int64
	server, client := start(t, slacktest.Options{Echo: true, OnEvent: func([]byte) { events.Add(1) },
		OnPost: func(slacktest.Post) { posts.Add(1) }, OnChange: func(slacktest.Post) { changes.Add(1) }})
	const callers, rounds = 8, 20
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			for round := range rounds {
				id := fmt.Sprint("C0ROOM", (n+round)%3)
				_, ts, err := client.PostMessageContext(t.Context(), id, slack.MsgOptionText("x", false), under(root))
				if err != nil {
					t.Error(err)
					return
				}
				_, _, _, err = client.UpdateMessageContext(t.Context(), id, ts, slack.MsgOptionText("y", false))
				wantCode(t, "update", err, "")
				wantCode(t, "react", client.AddReactionContext(t.Context(), "eyes", slack.NewRefToMessage(id, ts)), "")
				_, err = client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: id})
				wantCode(t, "read", err, "")
				server.Put(slacktest.Post{Channel: id, User: "U1", ThreadTS: root})
				server.Edit(id, ts, "z")
				server.SetChannel(slacktest.Channel{ID: id, Name: "room"})
				server.Posts()
				server.OpenStreams()
			}
		})
	}
	all.Wait()
	const each = callers * rounds
	if posts.Load() != each || changes.Load() != each || events.Load() != 3*each {
		t.Errorf("the server reported %d posts, %d changes and %d events", posts.Load(), changes.Load(), events.Load())
	}
	for n, p := range server.Posts() {
		if p.N != int64(n+1) || p.Shown() != "z" {
			t.Fatalf("post %d: %+v", n, p)
		}
	}
}
