package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/postgres/postgrestest"
)

// TestOperatorsAreTold: the bot writes to operators when an agent fails and when it answers again, each once, also over a restart. What the
// agent's server has said is no markup, and a pause does not silence the bot.
func TestOperatorsAreTold(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": postgrestest.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatorsAreTold(t, store(t))
		})
	}
}

func operatorsAreTold(t *testing.T, store string) {
	const ops = "C0OPS"
	h := open(t, plan{store: store, turns: "coalesce: 0s, max_attempts: 1", alerts: 5 * time.Millisecond, main: "alerts: {to: {workspace: acme, channel: " + ops + "}, on: [agent, delivery]}\n"})
	h.awaitState("acme", "up")
	alerts := func() (texts []string) {
		for _, p := range h.slack.Posts() {
			if p.Channel == ops {
				texts = append(texts, withoutZeroWidth(p.Shown()))
			}
		}
		return texts
	}
	await := func(n int) []string {
		t.Helper()
		for len(alerts()) < n {
			if !h.poll() {
				t.Fatalf("the alerts are %q\n%s", alerts(), h.log)
			}
		}
		return alerts()
	}
	if _, err := h.operate().Pause(h.ctx, operator.NewPause{Scope: "acme:" + ops}); err != nil {
		t.Fatal(err)
	}
	h.mention("anyone?")
	h.answerNext(func(w http.ResponseWriter) {
		http.Error(w, "[no](https://evil.example) `credit`", http.StatusForbidden)
	})
	if got := await(1)[0]; !strings.HasPrefix(got, "Trouble: agent helper fails: `") || strings.Contains(got[len("Trouble: agent helper fails: `"):len(got)-1], "`") {
		t.Errorf("%q", got)
	}
	h.restart()
	h.awaitState("acme", "up")
	h.mention("and now?")
	h.answerNext(func(w http.ResponseWriter) { http.Error(w, "still no", http.StatusForbidden) })
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="failed"}`, 1) // the two mentions are of different threads
	h.mention("at last?")
	h.answerNext(replyWith("Yes."))
	if got := await(2); len(got) != 2 || !strings.HasPrefix(got[1], "Over: agent helper fails") {
		t.Errorf("%q", got)
	}
}
