package access_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"parley/adapters/web/internal/testapi"
)

// ticket asks for a ticket.
func ticket(t *testing.T, s *testapi.Run, token, path string) string {
	t.Helper()
	status, body := s.Post(token, "/api/v1/tickets", `{"path":"`+path+`"}`)
	var given struct{ Ticket string }
	if err := json.Unmarshal([]byte(body), &given); status != http.StatusCreated || err != nil || len(given.Ticket) < 40 {
		t.Fatal(status, body, err)
	}
	return given.Ticket
}

// TestTicketAdmitsOnce checks that a ticket gives the rights of its caller for one GET of its
// path.
func TestTicketAdmitsOnce(t *testing.T) {
	s := testapi.Working(t)
	for name, c := range map[string]struct {
		token, path, request string
		status               int
	}{
		"its path":             {testapi.OwnToken, s.Updates, "GET " + s.Updates + "?", 200},
		"with a query":         {testapi.OwnToken, s.Updates + "?since=1", "GET " + s.Updates + "?since=2&", 200},
		"another path":         {testapi.OwnToken, s.Updates, "GET " + s.Follow + "?", 401},
		"another method":       {testapi.AgentToken, "/runs/" + s.ID + "/updates", "POST /runs/" + s.ID + "/updates?", 401},
		"a run of others":      {testapi.TheirToken, s.Updates, "GET " + s.Updates + "?", 404},
		"beside a wrong token": {"", s.Updates, "GET " + s.Updates + "?", 401},
	} {
		t.Run(name, func(t *testing.T) {
			var header []string
			by := c.token
			if by == "" {
				by, header = testapi.OwnToken, []string{"Authorization", "Bearer wrong"}
			}
			good := ticket(t, s, by, c.path)
			if status, body := s.Ask(c.request+"ticket="+good, "", header...); status != c.status {
				t.Errorf("%d %s; want %d", status, body, c.status)
			}
			if status, body := s.Ask(c.request+"ticket="+good, "", "Authorization", "Bearer wrong"); status != http.StatusUnauthorized {
				t.Errorf("once more: %d %s", status, body)
			}
		})
	}
	again := ticket(t, s, testapi.OwnToken, s.Updates)
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if status, body := s.Ask("GET "+s.Updates+"?ticket="+again, ""); status != want {
			t.Errorf("%d %s; want %d", status, body, want)
		}
	}
	for _, body := range []string{`{}`, `{"path":"runs"}`, `[]`, `{"path":7}`, `{"path":"/a","path":"/b"}`} {
		if status, got := s.Post(testapi.OwnToken, "/api/v1/tickets", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
}
