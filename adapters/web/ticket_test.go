package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// ticket asks for a ticket.
func ticket(t *testing.T, server *httptest.Server, token, path string) string {
	t.Helper()
	status, body := post(t, server, token, "/api/v1/tickets", `{"path":"`+path+`"}`)
	var given struct{ Ticket string }
	if err := json.Unmarshal([]byte(body), &given); status != http.StatusCreated || err != nil || len(given.Ticket) < 40 {
		t.Fatal(status, body, err)
	}
	return given.Ticket
}

// TestTicketAdmitsOnce checks that a ticket gives the rights of its caller for one GET of its
// path.
func TestTicketAdmitsOnce(t *testing.T) {
	server := working().serve(t)
	for name, c := range map[string]struct {
		token, path, request string
		status               int
	}{
		"its path":             {ownToken, updates, "GET " + updates + "?", 200},
		"with a query":         {ownToken, updates + "?since=1", "GET " + updates + "?since=2&", 200},
		"another path":         {ownToken, updates, "GET " + follow + "?", 401},
		"another method":       {anyToken, "/runs/" + run + "/updates", "POST /runs/" + run + "/updates?", 401},
		"a run of others":      {"their-token", updates, "GET " + updates + "?", 404},
		"beside a wrong token": {"", updates, "GET " + updates + "?", 401},
	} {
		t.Run(name, func(t *testing.T) {
			var header []string
			by := c.token
			if by == "" {
				by, header = ownToken, []string{"Authorization", "Bearer wrong"}
			}
			good := ticket(t, server, by, c.path)
			if status, body := ask(t, server, c.request+"ticket="+good, "", header...); status != c.status {
				t.Errorf("%d %s; want %d", status, body, c.status)
			}
			if status, body := ask(t, server, c.request+"ticket="+good, "", "Authorization", "Bearer wrong"); status != http.StatusUnauthorized {
				t.Errorf("once more: %d %s", status, body)
			}
		})
	}
	again := ticket(t, server, ownToken, updates)
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if status, body := ask(t, server, "GET "+updates+"?ticket="+again, ""); status != want {
			t.Errorf("%d %s; want %d", status, body, want)
		}
	}
	for _, body := range []string{`{}`, `{"path":"runs"}`, `[]`, `{"path":7}`, `{"path":"/a","path":"/b"}`} {
		if status, got := post(t, server, ownToken, "/api/v1/tickets", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
}
