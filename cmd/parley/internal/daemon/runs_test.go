package daemon_test

import (
	"path/filepath"
	"strings"
	"testing"

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
	a = <-h.model.asked
	a.reply <- replyWith("Fine.")
	same(t, h.posts(1)[0].Text, "Fine.")
}
