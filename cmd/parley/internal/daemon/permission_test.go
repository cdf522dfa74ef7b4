package daemon_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"parley/adapters/agent/acp/acptest"
	"parley/adapters/slack/slacktest"
)

// openProgram is a daemon whose agent is a program, which does what the messages say; see acptest.
func openProgram(t *testing.T) *asking {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &asking{harness: open(t, plan{files: map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 30s
console: {listen: "127.0.0.1:0"}
agents:
  - {id: helper, kind: acp, command: ["` + program + `"], dir: "` + t.TempDir() + `", env: {` + acptest.Variable + `: resume}, processes: 1, approvers: [` + mara + `]}
  - {id: echo, kind: echo}
` + operatorKeys}})}
	a.slack.SetHook(slacktest.Hook{URL: a.url + "/hooks/slack/acme", Secret: signingSecret})
	return a
}

// says waits for a post with some words.
func (a *asking) says(words string) slacktest.Post {
	a.t.Helper()
	for {
		for _, p := range a.slack.Posts() {
			if strings.Contains(p.Shown(), words) {
				return p
			}
		}
		if !a.poll() {
			a.t.Fatalf("nobody says %q\n%s", words, a.log)
		}
	}
}

// TestAPermissionOnSlack: a program asks twice for a permission. Only an approver may press, and the prompt goes on with each decision.
func TestAPermissionOnSlack(t *testing.T) {
	t.Parallel()
	a := openProgram(t)
	m := a.mention("please\nask c1 rm -rf build\nask c2 mv a b\nsay ready")
	question := a.says("rm -rf build")
	a.press("U0TOM", m.TS, question, 0)
	if told := a.private(1); told.User != "U0TOM" || !strings.Contains(told.Text, "approvers") {
		t.Errorf("%+v", told)
	}
	a.press(mara, m.TS, question, 0)
	question = a.says("mv a b")
	a.press(mara, m.TS, question, 2)
	a.says("asked no. ready")
}

// TestAPermissionIsTakenBack: a stop, and the deletion of the question's post, end the prompt that waits. Then the only process is free for another thread.
func TestAPermissionIsTakenBack(t *testing.T) {
	t.Parallel()
	a := openProgram(t)
	m := a.mention("please\nask c1 rm\nsay late")
	a.says("rm")
	m.Text, m.ThreadTS = "<@"+slacktest.BotUser+"> /stop", m.TS
	a.last = a.last.Add(time.Millisecond)
	m.TS = slacktest.Timestamp(a.last)
	a.accept(m.Mention())
	a.mention("please\nask c2 mv\nsay late")
	question := a.says("mv")
	a.accept(deleted(slacktest.Message{Channel: room, TS: question.TS}))
	a.mention("please\nsay free")
	a.says("free")
}
