package operator_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/audit"
)

// TestTheAuditSaysWhatHappened reads the outcome of each kind of result: an action that ended is not always one that succeeded.
func TestTheAuditSaysWhatHappened(t *testing.T) {
	t.Parallel()
	s := newService(t)
	want := map[string][2]string{}
	for what, end := range map[string]struct{ result, outcome, err string }{
		"delivery.resend":  {`{"id":11,"state":"failed","error":"channel_not_found"}`, "failed", "channel_not_found"},
		"delivery.confirm": {`{"id":11,"state":"sent","error":""}`, "sent", ""},
		"dead.retry":       {`{"id":1,"disposition":"dead","error":"event.text: must be a string"}`, "dead", "event.text: must be a string"},
		"dead.discard":     {`{}`, "done", ""},
		"reload":           {`{"applied":false,"faults":[{"file":"parley.yaml","line":3,"key":"knd","words":"is unknown"}]}`, "refused", "parley.yaml:3: knd: is unknown"},
		"run.stop":         {"", "failed", "the run has ended"},
		"backup":           {"", "running", ""},
	} {
		begun, err := s.Journal.Audit.BeginAction(t.Context(), audit.Action{Who: "olga", What: what})
		switch {
		case end.result != "":
			err = errors.Join(err, s.Journal.Audit.EndAction(t.Context(), begun.ID, end.result))
		case end.err != "":
			err = errors.Join(err, s.Journal.Audit.FailAction(t.Context(), begun.ID, end.err))
		}
		if err != nil {
			t.Fatal(err)
		}
		want[what] = [2]string{end.outcome, end.err}
	}
	list, err := s.Audit(t.Context(), operator.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]string{}
	for _, a := range list.Items {
		got[a.What] = [2]string{a.Outcome, a.Error}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
