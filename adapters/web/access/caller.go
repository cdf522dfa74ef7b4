package access

import (
	"context"
	"net/http"
	"slices"

	"parley/adapters/guard"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
)

// Caller is an authenticated caller: the workspace of its token, its identity there, and its
// rights.
type Caller struct {
	Workspace string
	Token     Token
	// Sender and kind identify the caller in its own messages.
	Sender string
	kind   event.SenderType
	// any allows the caller to set any identity in the metadata. bare allows the caller to
	// omit the metadata.
	any, bare bool
}

// Writes reports whether the caller may write in a workspace.
func (c Caller) Writes(workspace string) bool { return c.Workspace == workspace }

// Reads reports whether the caller may read a thread of a workspace whose id it knows.
func (c Caller) Reads(workspace string) bool { return c.Writes(workspace) || c.Lists(workspace) }

// Lists reports whether the caller may list the threads of a workspace.
func (c Caller) Lists(workspace string) bool {
	return c.IsIntegration() && c.Workspace == workspace || slices.Contains(c.Token.Read, workspace)
}

// Posts reports whether the caller may speak first somewhere in a workspace.
func (c Caller) Posts(workspace string) bool { return slices.Contains(c.Token.Posting(), workspace) }

// MayPost returns the error of a caller that may not speak first in a channel of a workspace; nil for one that may.
func (c Caller) MayPost(workspace, channel string) error {
	if c.Token.MayPost(workspace, channel) {
		return nil
	}
	return exchange.Fail(http.StatusForbidden, "forbidden", "this token may not post there: it needs posts with this workspace, or with workspace:channel")
}

// Injects reports whether the caller may put messages into a workspace that is not its own.
func (c Caller) Injects(workspace string) bool {
	return c.Workspace != workspace && slices.Contains(c.Token.Injects, workspace)
}

// Sends reports whether the caller may send messages to a workspace.
func (c Caller) Sends(workspace string) bool { return c.Writes(workspace) || c.Injects(workspace) }

// Owner returns the caller's token, to which its answers count.
func (c Caller) Owner() exchange.Owner {
	return exchange.Owner{Workspace: c.Workspace, Token: c.Token.ID}
}

// IsIntegration reports whether the caller may write in the name of others in its workspace.
func (c Caller) IsIntegration() bool { return c.any || c.Token.Senders == SendersAny }

// Admit authenticates a request about a workspace. right is Caller.Writes,
// Caller.Reads, Caller.Lists, Caller.Posts or Caller.Sends.
func (g Gate) Admit(w http.ResponseWriter, r *http.Request, workspace string, right func(Caller, string) bool) (Caller, error) {
	c, err := g.caller(r.Context(), workspace, guard.Bearer(r))
	switch {
	case err != nil:
		return Caller{}, g.refuseSigned(w, r, err)
	case c == nil || c.Workspace != workspace && !right(*c, workspace):
		return Caller{}, g.RefuseToken(w, r, "the request needs a token of this workspace: Authorization: Bearer …")
	case !right(*c, workspace):
		return Caller{}, exchange.Fail(http.StatusForbidden, "forbidden", "this token lacks the right: lists of threads need senders: any, or read with this workspace; posts need posts with it, and messages injects")
	}
	g.Guard.Admit(r)
	return *c, nil
}

// caller returns the caller with a token: of a workspace, or of another one that has a right to read
// it; nil for none. It treats an unknown workspace like a known one without tokens. Its errors are
// those of KeySets.signed.
func (g Gate) caller(ctx context.Context, workspace, given string) (*Caller, error) {
	all := g.Workspaces()
	of := Workspace{ID: workspace}
	if i := slices.IndexFunc(all, func(w Workspace) bool { return w.ID == workspace }); i >= 0 {
		of = all[i]
	}
	if token := of.find(given); token != nil {
		any := token.Senders == SendersAny
		return &Caller{Workspace: workspace, Token: *token, Sender: payload.OwnSender(token.ID), kind: event.Human, any: any || of.Local, bare: !any}, nil
	}
	for _, other := range all {
		if token := other.find(given); token != nil && slices.Contains(slices.Concat(token.Read, token.Posting(), token.Injects), workspace) {
			return &Caller{Workspace: other.ID, Token: *token}, nil
		}
	}
	_, u, err := g.Keys.signed(ctx, []Workspace{of}, given)
	if err != nil || u == nil {
		return nil, err
	}
	return &Caller{Workspace: workspace, Token: u.token(), Sender: string(u.Actor), kind: event.Human, bare: true}, nil
}

// RefuseToken returns the error of a request whose token is wrong or missing, and counts the
// failure of its address.
func (g Gate) RefuseToken(w http.ResponseWriter, r *http.Request, message string) error {
	refusal := g.Guard.Unauthorized(w, r, "unauthorized")
	w.Header().Set("WWW-Authenticate", "Bearer")
	return exchange.Fail(refusal.Status, refusal.Reason, message)
}
