package daemon_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// TestAFailedRunIsAskedAgain lets a model fail with a wrong key, and asks again once it is right. The person gets one
// answer, also if two operators repair it.
func TestAFailedRunIsAskedAgain(t *testing.T) {
	h := open(t, plan{})
	h.mention("how are you?")
	a := <-h.model.asked
	a.reply <- failWith(401)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="failed"}`, 1)
	c, err := config.Load(filepath.Join(h.dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := operator.Dial(t.Context(), c.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	failed, err := client.Runs(t.Context(), map[string][]string{"failed": {"true"}})
	if err != nil || len(failed.Items) != 1 || len(failed.Items[0].Attempts) != 1 || !strings.Contains(failed.Items[0].Error, "401") {
		t.Fatalf("%v %+v", err, failed)
	}
	if _, err := client.RetryRun(t.Context(), failed.Items[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RetryRun(t.Context(), failed.Items[0].ID); err == nil {
		t.Error("the same run was asked again twice")
	}
	if w, err := client.Why(t.Context(), failed.Items[0].ID); err != nil || !w.Found || w.Run != "failed" || !strings.Contains(w.RunWords, "asked again") || w.Repair != "" || w.Workspace != "acme" {
		t.Errorf("the life of a run that was asked again: %v %+v", err, w)
	}
	a = <-h.model.asked
	a.reply <- replyWith("Fine.")
	same(t, h.posts(1)[0].Text, "Fine.")
}

// TestTheInputOfEachRun is what its agent got, whether it is kept or not and also without a daemon. A run that is
// named by one of its messages is found, too.
func TestTheInputOfEachRun(t *testing.T) {
	t.Parallel()
	for name, inputs := range map[string]string{"kept": "retention: {inputs: 1h}\n", "assembled": ""} {
		t.Run(name, func(t *testing.T) {
			h := open(t, plan{main: inputs})
			var sent [][]chatMessage
			root := h.mention("one")
			sent = append(sent, h.answerNext(replyWith("First.")).messages)
			h.posts(1)
			for i, text := range []string{"two", "three"} {
				m := h.newMessage("<@" + slacktest.BotUser + "> " + text)
				m.ThreadTS = root.TS
				h.slack.Put(slacktest.Post{Channel: m.Channel, User: m.User, Text: m.Text, TS: m.TS, ThreadTS: m.ThreadTS})
				h.accept(m.Mention())
				sent = append(sent, h.answerNext(replyWith("Next.")).messages)
				h.posts(i + 2)
			}
			h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 3)
			ref := room + "/" + root.TS
			check := func(client *operator.Client) {
				t.Helper()
				list, err := client.Runs(t.Context(), nil)
				if err != nil || len(list.Items) != 3 {
					t.Fatalf("%+v %v", list, err)
				}
				for i, run := range list.Items { // the last one first
					in, err := client.Input(t.Context(), ref, run.ID)
					if err != nil || in.Kept != (inputs != "") || in.Run != run.ID {
						t.Fatalf("%+v %v", in, err)
					}
					var got []chatMessage
					for _, m := range in.Messages {
						got = append(got, chatMessage{m.Role, m.Text})
						if marked := m.Pieces[0].ByParley; marked != (m.Role == "user") { // the header above a person's words
							t.Errorf("%q: %+v", m.Text, m.Pieces)
						}
					}
					if want := sent[len(sent)-1-i]; !slices.Equal(got, want) {
						t.Errorf("the agent got %q, and shown is %q", want, got)
					}
				}
				if in, err := client.Input(t.Context(), ref, ""); err != nil || in.Run != list.Items[0].ID {
					t.Errorf("%+v %v", in, err)
				}
				if _, err := client.Input(t.Context(), ref, "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"); err == nil {
					t.Error("a run that nobody knows has an input")
				}
			}
			check(h.operate())
			if err := h.stop(); err != nil {
				t.Fatal(err)
			}
			check(h.alone())
		})
	}
}
