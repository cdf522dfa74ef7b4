package operator_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/config/secret"
	"parley/ingest"
)

// TestDecideAboutAStranger: an operator admits and refuses a person where the policy asks about strangers, takes it back, and the audit has
// each decision with the person's id. No role below operator decides.
func TestDecideAboutAStranger(t *testing.T) {
	s := searched(t)
	s.config.Operators = []config.Operator{{ID: "rea", Token: secret.New("reader-token"), Role: config.RoleReader}, {ID: "olga", Token: secret.New("operator-token"), Role: config.RoleOperator}}
	server := httptest.NewServer(s.Remote(true))
	t.Cleanup(server.Close)
	ctx := t.Context()
	c := operator.DialURL(server.URL, "operator-token")
	fails := func(what string, want int, person, decision, workspace string) {
		t.Helper()
		_, err := c.DecidePerson(ctx, person, decision, workspace, "")
		if refused := refusal(t, err); refused.Status != want {
			t.Errorf("%s: %+v", what, refused)
		}
	}
	access := func() string {
		t.Helper()
		p, err := c.Person(ctx, "mara")
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, a := range p.Access {
			all = append(all, string(a.State)+" in "+a.Workspace+" by "+a.By)
		}
		return strings.Join(all, ", ")
	}
	fails("nowhere are strangers asked about", http.StatusConflict, "mara", "admit", "")
	s.config.Workspaces[0].Channels = map[string]config.Settings{"C1": {Policy: ingest.Policy{Strangers: ingest.StrangersAsk}}}
	_, err := operator.DialURL(server.URL, "reader-token").DecidePerson(ctx, "mara", "admit", "", "")
	if refused := refusal(t, err); refused.Status != http.StatusForbidden {
		t.Errorf("a reader: %+v", refused)
	}
	for _, step := range []struct{ decision, want string }{
		{"admit", "always in acme by operator:olga"}, {"refuse", "no in acme by operator:olga"}, {"ask", ""},
	} {
		made, err := c.DecidePerson(ctx, "mara", step.decision, "", "")
		if diff := cmp.Diff(operator.Decided{SenderID: "slack:Mara", Workspaces: []string{"acme"}}, made); diff != "" || err != nil {
			t.Errorf("%s: %v %s", step.decision, err, diff)
		}
		if got := access(); got != step.want {
			t.Errorf("after %s: %q, want %q", step.decision, got, step.want)
		}
	}
	fails("nothing is left to take back", http.StatusConflict, "mara", "ask", "")
	fails("another workspace", http.StatusConflict, "mara", "admit", "guild")
	fails("a person of another platform", http.StatusConflict, "tom", "admit", "")
	fails("nobody", http.StatusNotFound, "slack:U0NOBODY", "admit", "")
	list, err := c.Audit(ctx, nil)
	var audit []string
	for _, a := range list.Items {
		if a.Error == "" {
			audit = append([]string{a.What + " " + a.Subject}, audit...)
		}
	}
	if diff := cmp.Diff([]string{"people.admit slack:Mara", "people.refuse slack:Mara", "people.ask slack:Mara"}, audit); diff != "" || err != nil {
		t.Errorf("the audit: %v %s", err, diff)
	}
}
