package slacktest_test

import (
	"fmt"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

// A fake replaces slack.com wherever the address of the Web API can be set, such as
// slack.api_url in Parley's configuration.
func Example() {
	server, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	question := server.Put(slacktest.Post{Channel: "C0ROOM", User: "U1", Text: "<@U0BOT> are you there?"})

	client := slack.New(slacktest.Token, slack.OptionAPIURL(server.URL()))
	_, _, err = client.PostMessage(question.Channel, slack.MsgOptionMarkdownText("**Yes.**"), slack.MsgOptionTS(question.TS))
	for _, post := range server.Posts() {
		fmt.Println(post.Shown(), post.ThreadTS == question.TS, err)
	}
	// Output: **Yes.** true <nil>
}
