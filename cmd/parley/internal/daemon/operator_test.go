package daemon_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
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

// alone returns a client of the store of a daemon that has stopped.
func (h *harness) alone() *operator.Client {
	h.t.Helper()
	c, err := config.Load(filepath.Join(h.dir, "parley.yaml"))
	if err != nil {
		h.t.Fatal(err)
	}
	client, err := daemon.Operate(h.ctx, c, "")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = client.Close() })
	return client
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

// TestStatusShowsTheFormOfRequests: the agent's server has refused another one.
func TestStatusShowsTheFormOfRequests(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 0s, max_attempts: 1"})
	h.mention("one")
	h.answerNext(func(w http.ResponseWriter) { http.Error(w, "System role not supported", http.StatusBadRequest) })
	h.answerNext(replyWith("Noted."))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	if form := h.status().Agents[0].Form; len(form) != 1 || !strings.Contains(form[0], "strict") {
		t.Errorf("%q", form)
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
	client := h.alone()
	if st, err := client.Status(h.ctx); err != nil || st.Running || !client.Stopped || st.Workspaces[0].State != "stopped" {
		t.Errorf("%v %+v", err, st)
	}
}

// The tokens of the operators of a test, and the secret of an agent that is never asked.
const (
	viewerToken   = "canary-viewer-1f0a77c2-5e9d"
	readerToken   = "canary-reader-83bd21e0-9c4f"
	operatorToken = "canary-operator-6a2e94d7-1b58"
	hookSecret    = "canary-webhook-77d0e1b9-4c3a"
)

// operatorKeys are lines of parley.yaml with operators, and with a listener for them.
const operatorKeys = `
operator: {listen: "127.0.0.1:0"}
operators:
  - {id: vera, token: ` + viewerToken + `, role: viewer}
  - {id: rhea, token: ` + readerToken + `, role: reader}
  - {id: olga, token: ` + operatorToken + `, role: operator}
`

// operatorCall sends a request to operator.listen. The answer must be as openapi.yaml describes it.
func (h *harness) operatorCall(method, path, token string) answer {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.ctx, method, "http://"+h.daemon.OperatorAddr().String()+operator.Prefix+path, nil)
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return h.send(request, err)
}

// TestOperatorsAreAdmittedByRole: the refusals are figures of the daemon.
func TestOperatorsAreAdmittedByRole(t *testing.T) {
	t.Parallel()
	h := open(t, plan{main: operatorKeys})
	for token, want := range map[string]int{viewerToken: 200, operatorToken: 200, "": 401, "wrong": 401, ownToken: 401} {
		if got := h.operatorCall(http.MethodGet, "status", token); got.status != want {
			t.Errorf("%q: %d %s", token, got.status, got.body)
		}
	}
	if got := h.operatorCall(http.MethodPost, "reload", readerToken); got.status != 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
	foreign, err := http.NewRequestWithContext(h.ctx, http.MethodGet, "http://"+h.daemon.OperatorAddr().String()+operator.Prefix+"status", nil)
	foreign.Host = "rebound.example"
	if got := h.send(foreign, err); got.status != 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
	for reason, want := range map[string]float64{"no-operator-token": 3, "role": 1, "foreign-host": 1} {
		if got := h.metric(`parley_rejected_requests_total{reason="` + reason + `"}`); got != want {
			t.Errorf("%s: %v", reason, got)
		}
	}
	response, err := h.client.Get(h.url + operator.Prefix + "status")
	if err != nil {
		t.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusNotFound {
		t.Errorf("the listener of hooks has the operator API: %d", response.StatusCode)
	}
}

// TestAViewerSeesNoTextOfDirectMessages, in no list and in no thread. A reader sees all, and everybody
// what was said in rooms.
func TestAViewerSeesNoTextOfDirectMessages(t *testing.T) {
	t.Parallel()
	h := open(t, plan{main: operatorKeys})
	h.accept(h.newMessage("<@" + slacktest.BotUser + "> said in the room").Event()) // its payload tells the channel's type
	h.answerNext(replyWith("Noted in the room."))
	h.awaitMetric(sent, 1)
	h.postWeb("said in private")
	h.answerNext(replyWith("Noted in private."))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 2)
	texts := func(token string) (all string) {
		list := decode[operator.List[operator.Thread]](t, h.operatorCall(http.MethodGet, "threads", token).body)
		if len(list.Items) != 2 {
			t.Fatalf("%+v", list)
		}
		for _, thread := range list.Items {
			got := h.operatorCall(http.MethodGet, "threads/"+thread.ID, token)
			if byKey := h.operatorCall(http.MethodGet, "threads/"+url.PathEscape(string(thread.Key)), token); byKey.body != got.body {
				t.Errorf("%s by its key: %s", thread.Key, byKey.body)
			}
			all += thread.Title + got.body
		}
		return all + h.operatorCall(http.MethodGet, "questions", token).body + h.operatorCall(http.MethodGet, "steps?follow=false", token).body
	}
	seen, all := texts(viewerToken), texts(readerToken)
	for text, public := range map[string]bool{"said in the room": true, "Noted in the room.": true, "said in private": false, "Noted in private.": false, "Olivia": false} {
		if strings.Contains(seen, text) != public || !strings.Contains(all, text) {
			t.Errorf("%q: to a viewer %v", text, strings.Contains(seen, text))
		}
	}
	if got := h.operatorCall(http.MethodGet, "threads/unknown", viewerToken); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := h.operatorCall(http.MethodGet, "threads?workspace=none", viewerToken); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestTheStepsOfAMessage are told to operators as they come, without its text.
func TestTheStepsOfAMessage(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	ctx, end := context.WithCancel(h.ctx)
	defer end()
	steps := make(chan operator.Step, 100)
	client := h.operate()
	go func() {
		_ = operator.Follow(ctx, client, "steps", url.Values{"workspace": {"acme"}}, func(s operator.Step) error {
			steps <- s
			return nil
		})
	}()
	h.mention("private words of a person")
	h.answerNext(replyWith("private words of the agent"))
	seen, all := map[string]operator.Step{}, []string{operator.StepReceived, operator.StepDecided, operator.StepTurn, operator.StepAttempt, operator.StepAnswered, operator.StepDelivery}
	unseen := func(what string) bool { return seen[what].What == "" }
	for slices.ContainsFunc(all, unseen) { // a delivery may come before the end of its run is told
		select {
		case s := <-steps:
			seen[s.What] = s
		case <-ctx.Done():
			t.Fatalf("%+v", seen)
		}
	}
	for _, what := range all {
		s := seen[what]
		if s.Workspace != "acme" || s.At.IsZero() || what != operator.StepDelivery && !strings.HasPrefix(s.Thread, "slack:acme:"+room) || strings.Contains(s.Detail, "private") {
			t.Errorf("%s: %+v", what, s)
		}
	}
	ofThread := url.Values{"thread": {seen[operator.StepDecided].Thread}, "follow": {"false"}}
	var of []string
	if err := operator.Follow(ctx, client, "steps", ofThread, func(s operator.Step) error {
		of = append(of, s.What)
		return nil
	}); err != nil || !slices.Equal(of[:min(3, len(of))], []string{operator.StepReceived, operator.StepDecided, operator.StepTurn}) {
		t.Errorf("the steps of the thread: %q, %v", of, err)
	}
	if d := seen[operator.StepDecided].Detail; d != "message, for the agent (mention)" {
		t.Errorf("%s", d)
	}
}

// TestReloadBySocket tells its faults and its changes.
func TestReloadBySocket(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	reload := func(name, content string) operator.Reloaded {
		write(t, filepath.Join(h.dir, name), h.places.Replace(content))
		got, err := h.operate().Reload(h.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	good, err := os.ReadFile(filepath.Join(h.dir, "workspaces/ours.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := reload("workspaces/ours.yaml", "id: ours\nplatform: web\nagent: nobody\n")
	if got.Applied || len(got.Faults) != 2 || got.Faults[1].Line != 3 || got.Faults[1].Key != "agent" || !strings.HasSuffix(got.Faults[1].File, "ours.yaml") {
		t.Errorf("%+v", got)
	}
	got = reload("workspaces/ours.yaml", string(good)+"policy: {max_age: 2h}\n")
	if !got.Applied || len(got.Faults) > 0 || !slices.Equal(got.Changed, []string{"ours: policy.max_age"}) || len(got.Restart) > 0 {
		t.Errorf("%+v", got)
	}
	got = reload("workspaces/ours.yaml", strings.ReplaceAll(string(good), ownToken, "canary-own-another-51c0e2"))
	if !got.Applied || !slices.Equal(got.Changed, []string{"ours: web.tokens[0].token", "ours: policy.max_age"}) {
		t.Errorf("%+v", got)
	}
	got = reload("workspaces/branch.yaml", branch)
	if !got.Applied || !slices.Equal(got.Changed, []string{"branch: added"}) {
		t.Errorf("%+v", got)
	}
	main, err := os.ReadFile(filepath.Join(h.dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got = reload("parley.yaml", string(main)+"attachments: {ttl: 2h}\n")
	if !got.Applied || !slices.Equal(got.Changed, []string{"attachments.ttl"}) || !slices.Equal(got.Restart, []string{"attachments.ttl"}) {
		t.Errorf("%+v", got)
	}
}

// TestReloadOfNothing names no change. The token of the built-in workspace is in no file.
func TestReloadOfNothing(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true})
	got, err := h.operate().Reload(h.ctx)
	if err != nil || !got.Applied || len(got.Changed) > 0 || len(got.Restart) > 0 {
		t.Errorf("%v %+v", err, got)
	}
}

// TestACommandDisturbsNoDaemon: a daemon starts and answers while a command without a daemon has the store open, and the
// command sees the new state.
func TestACommandDisturbsNoDaemon(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	var client *operator.Client
	h.restart(func() {
		client = h.alone()
		if list, err := client.Runs(h.ctx, nil); err != nil || len(list.Items) != 0 {
			t.Errorf("%v %+v", err, list)
		}
	})
	h.mention("one")
	h.answerNext(replyWith("Noted."))
	h.posts(1)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	if list, err := client.Runs(h.ctx, nil); err != nil || len(list.Items) != 1 {
		t.Errorf("%v %+v", err, list)
	}
}
