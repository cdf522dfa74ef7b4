package access_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/adapters/web/internal/testapi"
)

// ticket asks for a ticket.
func ticket(t *testing.T, server *httptest.Server, token, path string) string {
	t.Helper()
	status, body := testapi.Post(t, server, token, "/api/v1/tickets", `{"path":"`+path+`"}`)
	var given struct{ Ticket string }
	if err := json.Unmarshal([]byte(body), &given); status != http.StatusCreated || err != nil || len(given.Ticket) < 40 {
		t.Fatal(status, body, err)
	}
	return given.Ticket
}

// TestTicketAdmitsOnce checks that a ticket gives the rights of its caller for one GET of its
// path.
func TestTicketAdmitsOnce(t *testing.T) {
	server := testapi.Working().Serve(t)
	for name, c := range map[string]struct {
		token, path, request string
		status               int
	}{
		"its path":             {testapi.OwnToken, testapi.Updates, "GET " + testapi.Updates + "?", 200},
		"with a query":         {testapi.OwnToken, testapi.Updates + "?since=1", "GET " + testapi.Updates + "?since=2&", 200},
		"another path":         {testapi.OwnToken, testapi.Updates, "GET " + testapi.Follow + "?", 401},
		"another method":       {testapi.AnyToken, "/runs/" + testapi.Run + "/updates", "POST /runs/" + testapi.Run + "/updates?", 401},
		"a run of others":      {"their-token", testapi.Updates, "GET " + testapi.Updates + "?", 404},
		"beside a wrong token": {"", testapi.Updates, "GET " + testapi.Updates + "?", 401},
	} {
		t.Run(name, func(t *testing.T) {
			var header []string
			by := c.token
			if by == "" {
				by, header = testapi.OwnToken, []string{"Authorization", "Bearer wrong"}
			}
			good := ticket(t, server, by, c.path)
			if status, body := testapi.Ask(t, server, c.request+"ticket="+good, "", header...); status != c.status {
				t.Errorf("%d %s; want %d", status, body, c.status)
			}
			if status, body := testapi.Ask(t, server, c.request+"ticket="+good, "", "Authorization", "Bearer wrong"); status != http.StatusUnauthorized {
				t.Errorf("once more: %d %s", status, body)
			}
		})
	}
	again := ticket(t, server, testapi.OwnToken, testapi.Updates)
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if status, body := testapi.Ask(t, server, "GET "+testapi.Updates+"?ticket="+again, ""); status != want {
			t.Errorf("%d %s; want %d", status, body, want)
		}
	}
	for _, body := range []string{`{}`, `{"path":"runs"}`, `[]`, `{"path":7}`, `{"path":"/a","path":"/b"}`} {
		if status, got := testapi.Post(t, server, testapi.OwnToken, "/api/v1/tickets", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
}
