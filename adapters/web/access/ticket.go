package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/adapters/guard"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/threads"
)

const (
	// ticketAge is the time for which a ticket is valid.
	ticketAge = time.Minute
	// ticketBytes is the length of a ticket before its encoding.
	ticketBytes = 32
	// maxPath bounds the path of a ticket, in bytes.
	maxPath = 2048
)

// postTicket responds with a ticket for one GET of a path with the caller's rights: POST
// /api/v1/tickets {"path"}
func (g Gate) postTicket(c Call, w http.ResponseWriter, r *http.Request, raw []byte) error {
	var path string
	faults := payload.Members(raw, func(m event.Extra) string {
		if m.Key != "path" {
			return "is not a key of a ticket; the only one is path"
		}
		return payload.Text(m.Value, &path)
	})
	if len(faults) == 0 {
		faults.Check(strings.HasPrefix(path, "/") && len(path) <= maxPath, "path", "must be the path of a route, such as /runs/…/…/stream")
	}
	if len(faults) > 0 {
		return faults
	}
	path, _, _ = strings.Cut(path, "?")
	random := make([]byte, ticketBytes)
	_, _ = rand.Read(random) // never fails
	ticket := base64.RawURLEncoding.EncodeToString(random)
	if err := g.Tickets.PutTicket(r.Context(), ticket, threads.Ticket{Workspace: c.Workspace, Token: c.mark, Path: path}, ticketAge); err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusCreated, map[string]string{"ticket": ticket})
}

// redeem returns the call of a request whose ticket gives the rights of a caller. It returns nil for a
// request without a valid ticket.
func (g Gate) redeem(workspaces []Workspace, r *http.Request) *Call {
	secret := r.URL.Query().Get("ticket")
	if len(secret) != base64.RawURLEncoding.EncodedLen(ticketBytes) || r.Method != http.MethodGet || guard.Bearer(r) != "" {
		return nil
	}
	ticket, err := g.Tickets.TakeTicket(r.Context(), secret)
	if err != nil || ticket.Path != r.URL.Path && ticket.Path != r.URL.EscapedPath() {
		return nil
	}
	u := userOf(ticket.Token)
	for _, of := range workspaces {
		if of.ID != ticket.Workspace {
			continue
		}
		if u != nil && g.Keys.isAdmitted(u, of.JWT) {
			return new(g.callOf(of, u))
		}
		for i := range of.Tokens {
			if of.Tokens[i].mark() == ticket.Token {
				return new(g.call(of, of.Tokens[i]))
			}
		}
	}
	return nil // it is not configured any more
}

// mark names the token with its secret and its rights, so that a ticket ends with each of them.
func (t *Token) mark() string {
	mac := hmac.New(sha256.New, []byte(t.Token.Reveal()))
	_, _ = fmt.Fprintf(mac, "%+v", *t) // it never fails, and shows no secret
	return t.ID + " " + hex.EncodeToString(mac.Sum(nil))
}
