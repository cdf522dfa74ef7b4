package daemon_test

import (
	"net/url"
	"strings"
	"testing"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/postgres/postgrestest"
)

// TestATrialStoresNothing tries messages of a thread, in the room and directly, and compares the store.
func TestATrialStoresNothing(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); trialStoresNothing(t, "") })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); trialStoresNothing(t, postgrestest.URL(t)) })
}

func trialStoresNothing(t *testing.T, store string) {
	h := open(t, plan{acme: "policy: {follow_threads: false}", store: store})
	m := h.mention("remember the number 7")
	h.answerNext(replyWith("It is 7."))
	h.awaitMetric(sent, 1)
	c := h.operate()
	rows := func() string {
		t.Helper()
		rows, err := h.daemon.Rows(h.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before := rows()
	try := func(trial operator.Trial) operator.Tried {
		t.Helper()
		trial.Workspace = "acme"
		made, err := operator.Post[operator.Tried](h.ctx, c, "try", trial)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	thread := "slack:acme:" + room + ":" + m.TS
	if got := try(operator.Trial{Text: "not for you", Channel: room, Thread: thread}); got.Trigger != "passive" || got.Reason != "no-mention" || len(got.Assembled) > 0 {
		t.Errorf("without a mention: %+v", got)
	} else if len(got.Because) == 0 || got.Because[0].Key != "policy.require_mention" {
		t.Errorf("the settings: %+v", got.Because)
	}
	got := try(operator.Trial{Text: "which number?", Channel: room, Thread: thread, Mentions: true, Sender: "U0NEW", Name: "Nora"})
	if got.Trigger != "run" || got.Reason != "mention" || !got.Earlier || got.Agent != "helper" || len(got.Replies) > 0 {
		t.Errorf("with a mention: %+v", got)
	}
	var input, marked strings.Builder
	for _, m := range got.Assembled {
		input.WriteString(m.Text + "\n")
		for _, p := range m.Pieces {
			if p.ByParley {
				marked.WriteString(p.Text)
			}
		}
	}
	for _, want := range []string{"remember the number 7", "It is 7.", "[Nora (<@U0NEW>)]: ", "which number?"} {
		if !strings.Contains(input.String(), want) {
			t.Errorf("the input has no %q: %s", want, input.String())
		}
	}
	if !strings.Contains(marked.String(), "[Nora (<@U0NEW>)]: ") || strings.Contains(marked.String(), "number") {
		t.Errorf("Parley's own words: %q", marked.String())
	}
	go h.answerNext(replyWith("Seven."))
	if got := try(operator.Trial{Text: "hello", Direct: true, Ask: true}); got.Reason != "direct" || len(got.Replies) != 1 || got.Replies[0].Text != "Seven." {
		t.Errorf("a direct message: %+v", got)
	}
	if after := rows(); after != before {
		t.Errorf("the store has other rows: %s, before %s", after, before)
	}
	if n := len(h.posts(1)); n != 1 {
		t.Errorf("%d posts", n)
	}
	p := h.console()
	p.has(p.look("/try"), `data-test="try-text"`, `data-test="try-send"`)
	page := p.send("/try", url.Values{"workspace": {"acme"}, "text": {"<i>hm</i>"}})
	p.has(page, `data-test="why-reason"`, "no-mention", `data-test="why-key"`, "policy.require_mention: true", "The agent is not asked.")
}
