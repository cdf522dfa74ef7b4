package daemon_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"parley/cmd/parley/internal/daemon"
	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// operate returns a client of the daemon's socket.
func (h *harness) operate() *operator.Client {
	h.t.Helper()
	c, err := operator.Dial(h.ctx, filepath.Join(h.dir, "data", "parley.sock"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	return c
}

// status returns the daemon's state.
func (h *harness) status() operator.Status {
	h.t.Helper()
	st, err := h.operate().Status(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return st
}

// TestStatusShowsAFailingAgent: it is failing until a run succeeds again.
func TestStatusShowsAFailingAgent(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 0s, max_attempts: 1"})
	h.awaitState("acme", "up")
	st := h.status()
	if !st.Running || !st.Ready || st.Degraded() || st.Version != "" || st.Node == "" || st.Agents[0].State != "idle" || st.Workspaces[0].State != "up" {
		t.Errorf("%+v", st)
	}
	h.mention("one")
	h.answerNext(func(w http.ResponseWriter) { http.Error(w, "no such key", http.StatusUnauthorized) })
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="failed"}`, 1)
	if st = h.status(); st.Agents[0].State != "failing" || st.Agents[0].LastError == "" || !st.Degraded() || st.Workspaces[0].LastEventAt == nil {
		t.Errorf("%+v", st)
	}
	h.mention("two")
	h.answerNext(replyWith("Noted."))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	if st = h.status(); st.Agents[0].State != "idle" || st.Degraded() {
		t.Errorf("%+v", st)
	}
}

// TestTheSocketEndsWithTheDaemon: no file of it is left, and a command reads the store then.
func TestTheSocketEndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.status()
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(h.dir, "data", "parley.sock")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
	c, err := config.Load(filepath.Join(h.dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := daemon.Operate(h.ctx, c, "")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if st, err := client.Status(h.ctx); err != nil || st.Running || !client.Stopped || st.Workspaces[0].State != "stopped" {
		t.Errorf("%v %+v", err, st)
	}
}
