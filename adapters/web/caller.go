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

// caller is who a request speaks for.
type caller struct {
	token Token
	// any admits the metadata as it is given; bare lets it be left out.
	any, bare bool
}

// localToken is the identity of who uses the local workspace without metadata.
var localToken = Token{ID: "local", Name: "You"}

// admit authenticates a request, or answers it.
func (a API) admit(w http.ResponseWriter, r *http.Request) (caller, bool) {
	if a.local {
		if reason := foreign(r); reason != "" {
			a.fail(w, http.StatusForbidden, "not-local", reason, nil)
			return caller{}, false
		}
		return caller{token: localToken, any: true, bare: true}, true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	var found *Token
	for i := range a.config.Tokens { // each is compared, so that time does not tell which one matched
		if a.config.Tokens[i].Token.Equal(given) {
			found = &a.config.Tokens[i]
		}
	}
	if !strings.EqualFold(scheme, "Bearer") || found == nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.fail(w, http.StatusUnauthorized, "unauthorized", "a token of this workspace is needed: Authorization: Bearer …", nil)
		return caller{}, false
	}
	return caller{token: *found, any: found.Senders == SendersAny, bare: found.Senders != SendersAny}, true
}

// foreign says why a request can't be one of a program on this machine that was
// meant to come here: a web page of elsewhere, or a proxy in front of us.
func foreign(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if !slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, strings.ToLower(host)) {
		return "the local workspace answers to localhost, 127.0.0.1 and [::1] alone"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return "the local workspace answers no page of another origin"
		}
	}
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"} {
		if r.Header.Get(header) != "" {
			return "the local workspace answers nothing that was forwarded"
		}
	}
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if r.Method == http.MethodPost && !strings.EqualFold(strings.TrimSpace(mediaType), "application/json") {
		return "the local workspace takes Content-Type: application/json alone"
	}
	return ""
}

// complete reads a body and fills in what the caller may leave out.
func (c caller) complete(raw []byte) (Body, error) {
	b, err := ReadBody(raw)
	var faults event.FieldErrors
	if err != nil && !errors.As(err, &faults) {
		return b, err
	}
	if unread(faults) {
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

// metadata is what is stored for a message of this caller.
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
	if faults = c.claims(&given); len(faults) > 0 {
		return nil, faults
	}
	return c.own(given), nil
}

// claims are the keys by which a caller would speak as somebody else.
func (c caller) claims(m *event.Metadata) event.FieldErrors {
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
	refuse(m.ThreadContext != "", "thread_context", "may be given by an integration's token alone")
	refuse(m.IsFromMe != nil, "is_from_me", "may be given by an integration's token alone")
	refuse(m.RecipientID != "", "recipient_id", "may be given by an integration's token alone")
	return faults
}

// own writes the caller's identity into its metadata.
func (c caller) own(m event.Metadata) []byte {
	m.Source, m.SenderID, m.SenderDisplayName, m.SenderType = string(event.Web), "web:"+c.token.ID, c.token.Name, event.Human
	m.Edited()
	return m.Bytes()
}
