package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/ingest/event"
)

// caller is the identity that a request speaks for.
type caller struct {
	token Token
	// any allows the caller to set any identity in the metadata. bare allows the caller to
	// omit the metadata.
	any, bare bool
}

// localToken is the identity of a request without metadata to the local workspace.
var localToken = Token{ID: "local", Name: "You"}

// admit authenticates a request, or responds with an error.
func (a API) admit(w http.ResponseWriter, r *http.Request) (caller, bool) {
	if a.config.Local {
		if reason := foreign(r); reason != "" {
			a.fail(w, http.StatusForbidden, "not-local", reason, nil)
			return caller{}, false
		}
		return caller{token: localToken, any: true, bare: true}, true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	var found *Token
	for i := range a.config.Tokens { // compare with every token, so that the duration does not reveal which one matched
		if a.config.Tokens[i].Token.Equal(given) {
			found = &a.config.Tokens[i]
		}
	}
	if !strings.EqualFold(scheme, "Bearer") || found == nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.fail(w, http.StatusUnauthorized, "unauthorized", "the request needs a token of this workspace: Authorization: Bearer …", nil)
		return caller{}, false
	}
	return caller{token: *found, any: found.Senders == SendersAny, bare: found.Senders != SendersAny}, true
}

// foreign returns the reason if a request may not come from a program on this machine that
// called us on purpose: it may come from a web page of another site, or through a proxy. The
// reason is empty otherwise.
func foreign(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if !slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, strings.ToLower(host)) {
		return "the local workspace accepts only the hosts localhost, 127.0.0.1 and [::1]"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return "the local workspace refuses pages of another origin"
		}
	}
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"} {
		if r.Header.Get(header) != "" {
			return "the local workspace refuses forwarded requests"
		}
	}
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if r.Method == http.MethodPost && !strings.EqualFold(strings.TrimSpace(mediaType), "application/json") {
		return "the local workspace accepts only Content-Type: application/json"
	}
	return ""
}

// complete reads a body and adds the members that the caller may omit.
func (c caller) complete(raw []byte) (Body, error) {
	b, err := ReadBody(raw)
	var faults event.FieldErrors
	if err != nil && !errors.As(err, &faults) {
		return b, err
	}
	if unreadable(faults) {
		return b, faults
	}
	b.MessageID = ""
	if b.ClientMessageID == "" {
		b.MessageID = newID()
	}
	if b.ThreadID == "" {
		b.ThreadID = newID()
	}
	metadata, more := c.metadata(b.Metadata)
	b.Metadata = metadata
	if faults = append(faults, more...); len(faults) > 0 {
		return b, faults
	}
	return b, nil
}

// metadata returns the metadata to store for a message of this caller.
func (c caller) metadata(raw []byte) ([]byte, event.FieldErrors) {
	if raw == nil && c.bare {
		return c.own(event.Metadata{}), nil
	}
	var faults event.FieldErrors
	if c.any {
		_, err := parse(raw)
		errors.As(err, &faults)
		return raw, faults
	}
	given, err := event.ReadMetadata(raw)
	if errors.As(err, &faults) {
		return nil, faults
	}
	if faults = c.refusedClaims(&given); len(faults) > 0 {
		return nil, faults
	}
	return c.own(given), nil
}

// refusedClaims returns a fault for every key with which the caller claims another identity,
// or that only an integration may set.
func (c caller) refusedClaims(m *event.Metadata) event.FieldErrors {
	const reserved = "is allowed only for an integration's token"
	var faults event.FieldErrors
	refuse := func(bad bool, field, words string) {
		if bad {
			faults = append(faults, event.FieldError{Field: "metadata." + field, Message: words})
		}
	}
	fixed := func(field, given, want string) {
		refuse(given != "" && given != want, field, fmt.Sprintf("must be %q for this token, or be left out", want))
	}
	fixed("source", m.Source, string(event.Web))
	fixed("sender_id", m.SenderID, "web:"+c.token.ID)
	fixed("sender_display_name", m.SenderDisplayName, c.token.Name)
	fixed("sender_type", string(m.SenderType), string(event.Human))
	refuse(m.ThreadContext != "", "thread_context", reserved)
	refuse(m.IsFromMe != nil, "is_from_me", reserved)
	refuse(m.RecipientID != "", "recipient_id", reserved)
	return faults
}

// own adds the caller's identity to the metadata and returns its bytes.
func (c caller) own(m event.Metadata) []byte {
	m.Source, m.SenderID, m.SenderDisplayName, m.SenderType = string(event.Web), "web:"+c.token.ID, c.token.Name, event.Human
	m.Edited()
	return m.Bytes()
}
