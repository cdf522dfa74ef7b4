package operator_test

import (
	"errors"
	"path/filepath"
	"testing"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/journaltest"
)

func TestAClientWithoutADaemonReadsTheStore(t *testing.T) {
	t.Parallel()
	if _, err := operator.Dial(t.Context(), filepath.Join(journaltest.Dir(t), "parley.sock")); !errors.Is(err, operator.ErrNoDaemon) {
		t.Errorf("without a socket: %v", err)
	}
	c := operator.Alone(newService(t).Service, func() error { return nil })
	st, err := c.Status(t.Context())
	if err != nil || !c.Stopped || st.Running || st.Ready || st.Store.State != "ok" || st.Store.Schema == 0 || st.Store.Bytes == 0 {
		t.Errorf("%v %+v", err, st)
	}
	if len(st.Workspaces) != 1 || st.Workspaces[0].State != "stopped" || len(st.Agents) != 1 || st.Agents[0].State != "idle" {
		t.Errorf("%+v", st)
	}
	_, err = operator.Get[operator.Status](t.Context(), c, "nothing", nil)
	refused, ok := errors.AsType[*operator.Error](err)
	if !ok || refused.Status != 404 || refused.Code != "no-such-route" {
		t.Errorf("an unknown route: %v", err)
	}
}
