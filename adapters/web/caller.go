package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"parley/adapters/guard"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// caller is an authenticated caller: the workspace of its token, its identity there, and its
// rights.
type caller struct {
	workspace string
	token     Token
	// sender and kind identify the caller in its own messages.
	sender string
	kind   event.SenderType
	// any allows the caller to set any identity in the metadata. bare allows the caller to
	// omit the metadata.
	any, bare bool
}

// writes reports whether the caller may write in a workspace.
func (c caller) writes(workspace string) bool { return c.workspace == workspace }

// reads reports whether the caller may read a thread of a workspace whose id it knows.
func (c caller) reads(workspace string) bool { return c.writes(workspace) || c.lists(workspace) }

// lists reports whether the caller may list the threads of a workspace.
func (c caller) lists(workspace string) bool {
	return c.isIntegration() && c.workspace == workspace || slices.Contains(c.token.Read, workspace)
}

// isIntegration reports whether the caller may write in the name of others in its workspace.
func (c caller) isIntegration() bool { return c.any || c.token.Senders == SendersAny }

// uses returns journal.ErrNotFound if a caller may not use a thread of a workspace that it reads.
// madeBy is the client that made the thread; empty for none. A client's thread is for those who take
// part in it, and for those who may list it.
func (a API) uses(ctx context.Context, c caller, workspace, madeBy, threadID string) error {
	actor := c.token.actor(c.workspace)
	if madeBy == "" || madeBy == string(actor) || c.lists(workspace) {
		return nil
	}
	t, err := a.Store.Thread(ctx, workspace, threadID)
	if err == nil {
		err = takesPart(ctx, a.Store, actor, &t)
	}
	return err
}

// admitThread returns an error if the caller may not use the thread with an id; there may be none
// yet. Another client's thread is like an unknown one.
func (a API) admitThread(r *http.Request, c caller, id string) error {
	if c.lists(a.Workspace) {
		return nil
	}
	t, err := a.Store.Thread(r.Context(), a.Workspace, id)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return nil
	case err == nil && t.MadeBy != "":
		err = takesPart(r.Context(), a.Store, c.token.actor(c.workspace), &t)
	}
	return err
}

// admit authenticates a request. The right is one of writes, reads and lists.
func (a API) admit(w http.ResponseWriter, r *http.Request, right func(caller, string) bool) (caller, error) {
	c, err := a.caller(r.Context(), guard.Bearer(r))
	switch {
	case err != nil:
		return caller{}, a.refuseSigned(w, r, err)
	case c == nil || c.workspace != a.Workspace && !right(*c, a.Workspace):
		return caller{}, refuseToken(a.Guard, w, r, "the request needs a token of this workspace: Authorization: Bearer …")
	case !right(*c, a.Workspace):
		return caller{}, fail(http.StatusForbidden, "forbidden", "this token may not list threads: it needs senders: any, or read with this workspace")
	}
	a.Guard.Admit(r)
	return *c, nil
}

// refuseToken returns the error of a request whose token is wrong or missing, and counts the
// failure of its address.
func refuseToken(g *guard.Guard, w http.ResponseWriter, r *http.Request, message string) error {
	refusal := g.Unauthorized(w, r, "unauthorized")
	w.Header().Set("WWW-Authenticate", "Bearer")
	return fail(refusal.Status, refusal.Reason, message)
}

// caller returns the caller with a token: of this workspace, or of another one that has a
// right to read this one; nil for none. Its errors are those of KeySets.signed.
func (a API) caller(ctx context.Context, given string) (*caller, error) {
	if token := a.find(given); token != nil {
		any := token.Senders == SendersAny
		return &caller{workspace: a.Workspace, token: *token, sender: payload.OwnSender(token.ID), kind: event.Human, any: any || a.config.Local, bare: !any}, nil
	}
	for _, other := range a.Others() {
		if token := other.find(given); token != nil && slices.Contains(token.Read, a.Workspace) {
			return &caller{workspace: other.workspace, token: *token}, nil
		}
	}
	_, u, err := a.Keys.signed(ctx, []*Adapter{a.Adapter}, given)
	if err != nil || u == nil {
		return nil, err
	}
	return &caller{workspace: a.Workspace, token: u.token(), sender: string(u.Actor), kind: event.Human, bare: true}, nil
}

// find returns the workspace's token with a value. It compares with every token, so that the
// duration does not reveal which one matched.
func (a *Adapter) find(given string) (found *Token) {
	for i := range a.config.Tokens {
		if a.config.Tokens[i].Token.Equal(given) {
			found = &a.config.Tokens[i]
		}
	}
	return found
}

// complete reads a body and adds the members that the caller may omit.
func (c caller) complete(raw []byte) (payload.Body, error) {
	b, faults := payload.Parse(raw)
	if payload.Unreadable(faults) {
		return b, faults
	}
	faults.Check(b.TokenID == "", "token_id", "is not a key of a message")
	b.MessageID = ""
	if b.ClientMessageID == "" {
		b.MessageID = payload.NewID()
	}
	if b.ThreadID == "" {
		b.ThreadID = payload.NewID()
	}
	faults.Check(!journal.IsDerived(b.ThreadID), "thread_id", payload.DerivedID)
	faults.Check(b.Known == nil, "known", "is allowed only on the route of agent-messages")
	metadata, more := c.metadata(b.Metadata)
	b.Metadata, b.TokenID = metadata, c.token.named(c.workspace, metadata)
	faults = append(append(faults, more...), b.Unsent()...)
	if len(faults) > 0 {
		return b, faults
	}
	return b, recipient(metadata).Err()
}

// named returns the token's id if a message has one of the ids of the token's holder, else "": the
// limits count a holder once.
func (t *Token) named(workspace string, metadata []byte) string {
	m, err := event.ReadMetadata(metadata)
	if err == nil && (m.SenderID == payload.OwnSender(t.ID) || m.SenderID == string(t.actor(workspace))) {
		return t.ID
	}
	return ""
}

// recipient returns a fault if a message names a recipient that is no bot. A message to a bot that
// is no agent of the workspace is context.
func recipient(metadata []byte) (faults event.FieldErrors) {
	m, err := event.ReadMetadata(metadata)
	bot, isBot := strings.CutPrefix(m.RecipientID, "bot:")
	faults.Check(err == nil && (m.RecipientID == "" || isBot && bot != ""), "metadata.recipient_id", "must be bot:<id>, or be left out")
	return faults
}

// metadata returns the metadata to store for a message of this caller.
func (c caller) metadata(raw []byte) ([]byte, event.FieldErrors) {
	if raw == nil && c.bare {
		return c.own(event.Metadata{}), nil
	}
	if !c.any {
		given, err := event.ReadMetadata(raw)
		var faults event.FieldErrors
		if errors.As(err, &faults) {
			return nil, faults
		}
		if faults = c.refusedClaims(&given); len(faults) > 0 {
			return nil, faults
		}
		raw = c.own(given)
	}
	_, faults := payload.ParseMetadata(raw)
	return raw, faults
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
	fixed("sender_id", m.SenderID, c.sender)
	fixed("sender_display_name", m.SenderDisplayName, c.token.Name)
	fixed("sender_type", string(m.SenderType), string(c.kind))
	refuse(m.ThreadContext != "", "thread_context", reserved)
	refuse(m.IsFromMe != nil, "is_from_me", reserved)
	refuse(m.RecipientID != "", "recipient_id", reserved)
	refuse(m.MentionToken != "", "mention_token", reserved)
	refuse(m.ChannelExternalID != "", "channel_external_id", reserved)
	refuse(m.MessageGUID != "", "message_guid", reserved)
	return faults
}

// own adds the caller's identity to the metadata and returns its bytes.
func (c caller) own(m event.Metadata) []byte {
	m.Source, m.SenderID, m.SenderDisplayName, m.SenderType = string(event.Web), c.sender, c.token.Name, c.kind
	m.Edited()
	return m.Bytes()
}
