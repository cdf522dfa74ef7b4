package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"parley/config"
	"parley/ingest/journal/audit"
)

var auditRoutes = []Route{
	{Pattern: "GET audit", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.Audit(c.Context(), page)
	}},
}

// Action is one action of an operator.
type Action struct {
	ID      int64           `json:"id"`
	At      time.Time       `json:"at"`
	Who     string          `json:"who"`
	What    string          `json:"what"`
	Subject string          `json:"subject"`
	Note    string          `json:"note"`
	Result  json.RawMessage `json:"result"` // null if it has not ended or has failed
	Error   string          `json:"error"`  // of the action, or of the subject that it has left with one
	// Outcome is running, failed for an action that was refused or broke off, or else the state in which the action has left its
	// subject, such as sent or failed for a delivery; done for one without a state.
	Outcome string `json:"outcome"`
}

// Audit returns a page of what operators did, the newest first.
func (s *Service) Audit(ctx context.Context, page Page) (List[Action], error) {
	before, err := page.Row()
	if err != nil {
		return List[Action]{}, err
	}
	rows, err := s.Journal.Audit.Actions(ctx, before, page.Limit)
	if err != nil {
		return List[Action]{}, err
	}
	items := make([]Action, len(rows))
	for i, r := range rows {
		items[i] = actionOf(r)
	}
	return listOf(items, audit.AreMore(rows, page.Limit), func(a Action) string { return strconv.FormatInt(a.ID, 10) }), nil
}

func actionOf(r audit.Action) Action {
	a := Action{ID: r.ID, At: r.At, Who: r.Who, What: r.What, Subject: r.Subject, Note: r.Note, Error: r.Error}
	switch {
	case r.Error != "":
		a.Outcome = "failed"
	case r.Result == "":
		a.Outcome = "running"
	default:
		var left struct {
			State, Disposition, Error string
			Faults                    []Fault // of a reload
		}
		a.Result = json.RawMessage(r.Result)
		_ = json.Unmarshal(a.Result, &left) // a result without these keys has no state
		if a.Outcome, a.Error = cmp.Or(left.State, left.Disposition, "done"), left.Error; len(left.Faults) > 0 {
			a.Outcome, a.Error = "refused", left.Faults[0].String()
		}
	}
	return a
}

// Audit returns a page of what operators did, the newest first.
func (c *Client) Audit(ctx context.Context, query url.Values) (List[Action], error) {
	return Get[List[Action]](ctx, c, "audit", query)
}
