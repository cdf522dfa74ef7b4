package operator

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/people"
	"parley/ingest/journal/strangers"
)

var strangerRoutes = []Route{
	{Pattern: "POST people/{person}/admit", Role: config.RoleOperator, serve: decides(strangers.Always)},
	{Pattern: "POST people/{person}/refuse", Role: config.RoleOperator, serve: decides(strangers.No)},
	{Pattern: "POST people/{person}/ask", Role: config.RoleOperator, serve: decides("")},
}

// decides serves a decision about a person; see DecidePerson.
func decides(state strangers.State) func(s *Service, c *Call) (any, error) {
	return func(s *Service, c *Call) (any, error) {
		var n struct {
			Workspace string `json:"workspace"`
			Note      string `json:"note"`
		}
		if err := c.Bind(&n); err != nil {
			return nil, err
		}
		return s.DecidePerson(c.Context(), c.Write(n.Note), c.Path("person"), n.Workspace, state)
	}
}

// Access is the decision about a stranger of a workspace.
type Access struct {
	Workspace string          `json:"workspace"`
	State     strangers.State `json:"state"`
	By        string          `json:"by,omitempty"` // an approver's sender_id, or an operator
	At        time.Time       `json:"at"`
}

func accessOf(p *people.Person) (list []Access) {
	for _, s := range p.Strangers {
		list = append(list, Access{s.Workspace, s.State, s.By, s.ChangedAt.UTC()})
	}
	return list
}

// Decided is the result of a decision about a person.
type Decided struct {
	SenderID   string   `json:"sender_id"`
	Workspaces []string `json:"workspaces"` // in which it holds
}

// DecidePerson admits a person always, refuses the person, or, without a state, takes the decision back, so that the next message asks again. It
// holds in the workspaces of the platform in which the person has asked or written; in one of them, if it is named. An open question to approvers is
// answered by it.
func (s *Service) DecidePerson(ctx context.Context, w Write, ref, workspace string, state strangers.State) (Decided, error) {
	p, err := s.person(ctx, ref)
	if err != nil {
		return Decided{}, err
	}
	what := map[strangers.State]string{strangers.Always: "people.admit", strangers.No: "people.refuse", "": "people.ask"}[state]
	return audited(ctx, s, w, what, p.SenderID, func(ctx context.Context) (Decided, error) {
		made := Decided{SenderID: p.SenderID, Workspaces: []string{}}
		for _, id := range p.Workspaces {
			if workspace != "" && id != workspace || !s.asks(id, p.SenderID) {
				continue
			}
			holds := true
			if state == "" {
				holds, err = s.Journal.Strangers.Forget(ctx, id, p.SenderID)
			} else {
				err = s.Journal.Strangers.Decide(ctx, id, p.SenderID, p.Name, state, event.OperatorSender(w.By))
			}
			if err != nil {
				return made, err
			}
			if holds {
				made.Workspaces = append(made.Workspaces, id)
			}
		}
		if len(made.Workspaces) > 0 {
			return made, s.strangersChanged(ctx)
		}
		words := "no workspace of " + p.SenderID + " asks about strangers: set policy.strangers: ask, or name another workspace"
		if state == "" {
			words = "nothing was decided about " + p.SenderID + ", or the question to the approvers is open: parley people shows it"
		}
		return made, Fail(http.StatusConflict, "no-stranger", words)
	})
}

// strangersChanged lets the daemon, if there is one, know a decision about a stranger at once.
func (s *Service) strangersChanged(ctx context.Context) error {
	if s.Live == nil || s.Live.Strangers == nil {
		return nil
	}
	s.Live.Strangers.Changed()
	return s.Live.Strangers.Read(ctx)
}

// asks reports whether a workspace is of a person's platform, and asks about strangers somewhere.
func (s *Service) asks(workspace, sender string) bool {
	w := s.Config().Workspace(workspace)
	if w == nil {
		return false
	}
	platform, _ := config.Platform(w.Platform)
	return strings.HasPrefix(sender, platform.Namespace()+":") && w.AsksAboutStrangers()
}

// DecidePerson asks for a decision about a person: admit, refuse or ask. The workspace may be empty.
func (c *Client) DecidePerson(ctx context.Context, ref, decision, workspace, note string) (Decided, error) {
	return Post[Decided](ctx, c, "people/"+url.PathEscape(ref)+"/"+decision, map[string]string{"workspace": workspace, "note": note})
}
