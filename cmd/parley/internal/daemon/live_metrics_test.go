package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
)

// requests returns the name of the figure of acme's requests by a method, with a code.
func requests(method, code string) string {
	return `parley_platform_requests_total{code="` + code + `",method="` + method + `",workspace="acme"}`
}

// TestMetricsOfThePlatform counts the requests of a workspace by method and result, the waits of its rate limits, and
// the time from a message to its first post.
func TestMetricsOfThePlatform(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.awaitState("acme", "up")
	h.slack.Script("chat.postMessage", slacktest.Fault{Status: http.StatusTooManyRequests, RetryAfter: "3"}, slacktest.Fault{Error: "fatal_error"})
	h.mention("are you there?")
	h.answerNext(replyWith("Yes."))
	for h.metric(sent) == 0 && h.poll() {
		h.clock.advance(time.Second)
	}
	for name, want := range map[string]float64{
		requests("chat.postMessage", "429"):                                1,
		requests("chat.postMessage", "refused"):                            1,
		requests("chat.postMessage", "200"):                                1,
		requests("auth.test", "200"):                                       1,
		`parley_platform_throttled_seconds_total{workspace="acme"}`:        3,
		`parley_answer_seconds_count{workspace="acme"}`:                    1,
		`parley_turn_wait_seconds_count{agent="helper"}`:                   1,
		`parley_connections{state="up",workspace="acme"}`:                  1,
		`parley_connections{state="down",workspace="acme"}`:                0,
		`parley_connections{state="up",workspace="ours"}`:                  1,
		`parley_streams_open`:                                              0,
		`parley_backup_last_success_timestamp_seconds`:                     0,
		`parley_platform_throttled_seconds_total{workspace="ours"}`:        0,
		`parley_answer_seconds_bucket{workspace="acme",le="1"}`:            0, // the platform asked for a wait of 3 s
		`parley_turn_wait_seconds_bucket{agent="helper",le="60"}`:          1,
		`parley_platform_requests_total{code="none",method="chat.update"}`: 0,
	} {
		if got := h.metric(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	h.postWeb("and there?")
	h.answerNext(replyWith("Here, too."))
	h.awaitMetric(`parley_answer_seconds_count{workspace="ours"}`, 1)
	if h.metric("parley_store_free_bytes") <= 0 {
		t.Error("the free space is unknown")
	}
}

// TestMetricOfTheBackup survives a restart.
func TestMetricOfTheBackup(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := h.operate().BackupVerified(h.ctx, operator.Backup{At: at, SHA256: strings.Repeat("a", 64)}); err != nil {
		t.Fatal(err)
	}
	h.awaitMetric("parley_backup_last_success_timestamp_seconds", float64(at.Unix()))
	h.restart()
	h.awaitMetric("parley_backup_last_success_timestamp_seconds", float64(at.Unix()))
}

// TestMetricOfStreams counts the streams that are open.
func TestMetricOfStreams(t *testing.T) {
	t.Parallel()
	h := open(t, chatPlan("sqlite:data/parley.db"))
	thread := h.newThread("open")
	for i := range 2 {
		h.hear(thread+"/stream", ownToken, "")
		h.awaitMetric("parley_streams_open", float64(i+1))
	}
}
