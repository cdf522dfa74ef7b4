package slack_test

import (
	"testing"

	"parley/adapters"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
)

// storedSelf are facts with a stored identity.
type storedSelf struct{ self event.Self }

func (s storedSelf) Self() event.Self { return s.self }

func (storedSelf) ChannelType(string) event.ChannelType { return event.ChannelUnknown }

// TestEventsWaitForTheIdentityOfTheToken: the stored identity may be of an earlier token. An event
// that belongs to it, or to no workspace by it, is judged after auth.test.
func TestEventsWaitForTheIdentityOfTheToken(t *testing.T) {
	_, adapter := testapp.Start(t, slacktest.Options{})
	earlier := event.Self{TeamID: slacktest.Team, UserID: "UEARLIER1", AppID: "AEARLIER1"}
	envelope := event.Envelope{Workspace: "acme", Platform: event.Slack, Body: []byte(`{"type":"event_callback","team_id":"TACME0001","api_app_id":"APARLEY01",
		"authorizations":[{"team_id":"TACME0001","user_id":"UPARLEY01","is_bot":true}],
		"event":{"type":"message","channel":"C1","user":"UMARA0001","text":"hi","ts":"1750000000.000100","bot_id":"B1"}}`)}
	for about, stored := range map[string]event.Self{"an earlier bot": earlier, "the same bot": {TeamID: slacktest.Team, UserID: slacktest.BotUser}, "nobody": {}} {
		if keys := adapter.Keys(envelope, storedSelf{stored}); keys.Needs != "user" || keys.Result != nil {
			t.Errorf("before auth.test, %s is stored: %+v", about, keys)
		}
	}
	if _, _, err := adapter.Find(t.Context(), adapters.Post{To: adapters.Address{Channel: "C0GARDEN"}}); err != nil {
		t.Fatal(err) // it asks who we are
	}
	if keys := adapter.Keys(envelope, storedSelf{earlier}); keys.Needs != "user" || keys.Result != nil {
		t.Errorf("before the identity is stored: %+v", keys)
	}
	if keys := adapter.Keys(envelope, storedSelf{event.Self{TeamID: slacktest.Team, UserID: slacktest.BotUser}}); keys.Needs != "" {
		t.Errorf("with the identity of the token: %+v", keys)
	}
	bad := event.Envelope{Body: []byte(`{"type":"message","channel":"C1","user":"UMARA0001","text":7,"ts":"1750000000.000100"}`)}
	if keys := adapter.Keys(bad, storedSelf{earlier}); keys.Result == nil || keys.Result.Disposition != event.Dead {
		t.Errorf("an unreadable event: %+v", keys)
	}
}
