package send_test

import (
	"errors"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/send"
	"parley/adapters/slack/slacktest"
)

func TestStatusSign(t *testing.T) {
	s := newFixture(t)
	if err := s.adapter.ShowWorking(t.Context(), s.sign); err != nil || s.server.Status(testapp.Room, s.post.To.Place) != "is thinking…" {
		t.Errorf("%q, %v", s.server.Status(testapp.Room, s.post.To.Place), err)
	}
	working := s.sign
	working.Text = "asks <!channel>"
	if err := s.adapter.ShowWorking(t.Context(), working); err != nil || s.server.Status(testapp.Room, s.post.To.Place) != "asks ‹!channel›" {
		t.Errorf("%q, %v", s.server.Status(testapp.Room, s.post.To.Place), err)
	}
	for range 2 {
		if err := s.adapter.ClearWorking(t.Context(), s.sign); err != nil || s.server.Status(testapp.Room, s.post.To.Place) != "" {
			t.Errorf("%q, %v", s.server.Status(testapp.Room, s.post.To.Place), err)
		}
	}
	s.sign.To.Place = "" // in a conversation the message can become a root
	if err := s.adapter.ShowWorking(t.Context(), s.sign); err != nil || s.server.Status(testapp.Room, s.post.To.Place) == "" {
		t.Error(err)
	}
	s.sign.Message = "command:1"
	if err := errors.Join(s.adapter.ShowWorking(t.Context(), s.sign), s.adapter.ClearWorking(t.Context(), s.sign)); err != nil {
		t.Error(err)
	}
}

func TestReactionSign(t *testing.T) {
	s := newFixture(t)
	c := testapp.Config(s.server.URL())
	c.Working, c.WorkingEmoji = send.WorkingReaction, "hourglass"
	adapter := slack.New("acme", c)
	if limits := adapter.Limits(); limits.SignText != 0 || s.adapter.Limits().SignText == 0 {
		t.Error("a reaction has a text, or a status has none")
	}
	for range 2 { // a second call is no error
		if err := adapter.ShowWorking(t.Context(), s.sign); err != nil {
			t.Error(err)
		}
	}
	if got := s.server.Reactions(testapp.Room, s.post.To.Place); len(got) != 1 || got[0].Name != "hourglass" {
		t.Errorf("%+v", got)
	}
	for range 2 {
		if err := adapter.ClearWorking(t.Context(), s.sign); err != nil {
			t.Error(err)
		}
	}
	if got := s.server.Reactions(testapp.Room, s.post.To.Place); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	s.sign.Message = testapp.Room + "/1600000000.000100"
	if err := adapter.ClearWorking(t.Context(), s.sign); err != nil {
		t.Errorf("a deleted message: %v", err)
	}
	if got := testapp.Failure(t, adapter.ShowWorking(t.Context(), s.sign)); got.Failure != adapters.Permanent {
		t.Error(got)
	}
	s.sign.Message = "command:1"
	if got := testapp.Failure(t, adapter.ShowWorking(t.Context(), s.sign)); got.Failure != adapters.Permanent {
		t.Error(got)
	}
}

func TestWorkingOff(t *testing.T) {
	s := newFixture(t)
	c := testapp.Config(s.server.URL())
	c.Working = send.WorkingOff
	adapter := slack.New("acme", c)
	if err := adapter.ShowWorking(t.Context(), s.sign); err != nil || s.server.Status(testapp.Room, s.post.To.Place) != "" || adapter.Limits().Sign {
		t.Errorf("%q, %v", s.server.Status(testapp.Room, s.post.To.Place), err)
	}
	if err := adapter.ClearWorking(t.Context(), s.sign); err != nil {
		t.Error(err)
	}
}

// TestMissingScopeOfASignIsReportedOnce checks that the adapter does not call again for
// an hour.
func TestMissingScopeOfASignIsReportedOnce(t *testing.T) {
	for _, working := range []string{send.WorkingStatus, send.WorkingReaction} {
		asked := 0
		server, _ := testapp.Start(t, slacktest.Options{Scopes: []string{"users:read"}, OnCall: func(slacktest.Call) { asked++ }})
		c := testapp.Config(server.URL())
		c.Working = working
		adapter := slack.New("acme", c)
		now := testapp.Noon
		adapter.Client.Now = func() time.Time { return now }
		sign := adapters.Sign{To: adapters.Address{Channel: testapp.Room, Place: "1699999999.000100"}, Message: testapp.Room + "/1699999999.000100"}
		if got := testapp.Failure(t, adapter.ShowWorking(t.Context(), sign)); got.Failure != adapters.Permanent {
			t.Errorf("%s: %v", working, got)
		}
		now = now.Add(59 * time.Minute)
		if err := adapter.ShowWorking(t.Context(), sign); err != nil || asked != 1 {
			t.Errorf("%s: %d calls, %v", working, asked, err)
		}
		now = now.Add(2 * time.Minute)
		if err := adapter.ShowWorking(t.Context(), sign); err == nil || asked != 2 {
			t.Errorf("%s: %d calls, %v", working, asked, err)
		}
	}
}

// TestStatusIsSetAgainInTime: Slack removes a status after two minutes.
func TestStatusIsSetAgainInTime(t *testing.T) {
	_, adapter := testapp.Start(t, slacktest.Options{})
	if every := adapter.Limits().SignEvery; every <= 0 || every > 100*time.Second {
		t.Errorf("the status is set again every %v", every)
	}
}
