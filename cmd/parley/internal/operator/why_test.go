package operator_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest/event"
)

// slackWorkspace replaces the configuration of a service by one with a workspace on Slack.
func (s *service) slackWorkspace(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"parley.yaml": "workspaces: acme.yaml\n", "acme.yaml": "id: acme\nplatform: slack\nagent: echo\nslack: {app_token: xapp-1, bot_token: xoxb-1}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.config = c
}

// holding returns the reasons that hold, and how many were not tested.
func holding(t *testing.T, s *operator.Service, ref string) (holds []string, untested int) {
	t.Helper()
	w, err := s.Why(t.Context(), operator.OnSocket(""), ref)
	if err != nil || w.Found || len(w.Possible) == 0 {
		t.Fatalf("%s: %v %+v", ref, err, w)
	}
	for _, p := range w.Possible {
		if p.Holds {
			holds = append(holds, p.Reason)
		}
		if !p.Tested {
			untested++
		}
	}
	return holds, untested
}

// TestAnUnknownWordHasPossibleReasons: they name the workspace whose bot may not be in a channel, and none is about the bot of the API, which has none.
func TestAnUnknownWordHasPossibleReasons(t *testing.T) {
	t.Parallel()
	s := newService(t)
	bots := func() (words []string) {
		w, err := s.Why(t.Context(), operator.OnSocket(""), "nonsense")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range w.Possible {
			if strings.Contains(p.Reason, "the bot of the workspace ") {
				words = append(words, p.Reason)
			}
		}
		return words
	}
	if got := bots(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	s.slackWorkspace(t)
	if got := bots(); len(got) != 1 || !strings.Contains(got[0], "the workspace acme is not in the channel") {
		t.Errorf("%q", got)
	}
}

// TestAMissingMessageHasPossibleReasons makes each possible reason hold.
func TestAMissingMessageHasPossibleReasons(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.slackWorkspace(t)
	now := time.Now()
	link := func(at time.Time) string {
		return fmt.Sprintf("https://acme.slack.com/archives/C06RY3YBSLE/p%d000100", at.Unix())
	}
	s.Live = &operator.Live{Workspaces: &workspaces{channels: []string{"C06RY3YBSLE"}}}
	s.Now = func() time.Time { return now.Add(time.Hour) }
	missed := now.Add(10 * time.Minute)
	for name, c := range map[string]struct {
		ref, want string
	}{
		"before the first start": {link(now.Add(-10 * time.Minute)), "before the first start"},
		"the future":             {link(now.Add(2 * time.Hour)), "of the future"},
		"too old to be read":     {link(now.Add(-40 * time.Hour)), "older than catch_up.max_age (24h)"},
		"ignored long ago":       {link(now.Add(-31 * 24 * time.Hour)), "gone after retention.keys"},
		"no workspace":           {"https://discord.com/channels/1/310000000000000000/1267190211223752701", "no workspace is configured"},
	} {
		holds, _ := holding(t, s.Service, c.ref)
		if !strings.Contains(strings.Join(holds, "\n"), c.want) {
			t.Errorf("%s: %q", name, holds)
		}
	}
	if holds, untested := holding(t, s.Service, link(missed)); len(holds) > 0 || untested > 0 {
		t.Errorf("no reason holds, but: %q, %d untested", holds, untested)
	}
	gap := event.Gap{Channel: "C06RY3YBSLE", From: missed.Add(-time.Minute), Until: missed.Add(time.Minute)}
	if err := s.Journal.Threads.OpenGaps(t.Context(), "acme", []event.Gap{gap}, gap.Until); err != nil {
		t.Fatal(err)
	}
	if holds, _ := holding(t, s.Service, link(missed)); len(holds) != 1 || !strings.Contains(holds[0], "a gap is open") {
		t.Errorf("with an open gap: %q", holds)
	}
	if holds, _ := holding(t, s.Service, link(missed.Add(5*time.Minute))); len(holds) != 1 || !strings.Contains(holds[0], "has not heard") {
		t.Errorf("after the last event: %q", holds)
	}
	s.Live.Workspaces = &workspaces{channels: []string{"C0OTHER"}}
	if holds, _ := holding(t, s.Service, link(missed)); len(holds) != 2 || !strings.Contains(holds[1], "invite it") {
		t.Errorf("without the channel: %q", holds)
	}
	s.Live.Workspaces = &workspaces{err: errors.New("503")}
	if _, untested := holding(t, s.Service, link(missed)); untested != 1 {
		t.Errorf("%d reasons are not tested without the platform's answer", untested)
	}
	s.Live = nil
	if _, untested := holding(t, s.Service, link(missed)); untested != 1 {
		t.Errorf("%d reasons are not tested without a daemon", untested)
	}
}

func TestWhyRefusesAReferenceWithoutContent(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"", "  ", strings.Repeat("x", 1001)} {
		if _, err := newService(t).Why(t.Context(), operator.OnSocket(""), ref); err == nil {
			t.Errorf("%.10q is no reference", ref)
		}
	}
}
