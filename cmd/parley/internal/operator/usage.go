package operator

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/usage"
)

var usageRoutes = []Route{
	{Pattern: "GET usage", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		if err := c.Known("by", "since", "workspace", "limit", "before"); err != nil {
			return nil, err
		}
		q, err := s.UsageQuery(c.Query("by"), c.Query("since"), c.Query("workspace"))
		if err != nil {
			return nil, err
		}
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.Usage(c.Context(), c.By, q, page)
	}},
}

// Used has the sums of one agent, person, channel, day or workspace.
type Used struct {
	Key       string  `json:"key"`                 // an id, or the date of a day; empty for an unknown person, and for conversations of our API
	Name      string  `json:"name,omitempty"`      // of a person or a channel; empty for an unknown one
	Workspace string  `json:"workspace,omitempty"` // of a channel
	Questions int64   `json:"questions"`
	Answers   int64   `json:"answers"`
	Failures  int64   `json:"failures"`
	Minutes   float64 `json:"minutes"`    // of agents' work
	TokensIn  *int64  `json:"tokens_in"`  // nil: no agent has reported any
	TokensOut *int64  `json:"tokens_out"` // nil as well
}

// Tokens are all tokens; 0 if none are known.
func (u *Used) Tokens() int64 {
	if u.TokensIn == nil {
		return 0
	}
	return *u.TokensIn + *u.TokensOut
}

// usualSince is how far back a list of usage goes that names no time.
const usualSince = "7d"

// UsageBys returns the values of by.
func UsageBys() (list []string) {
	for _, by := range usage.Kinds() {
		list = append(list, string(by))
	}
	return list
}

// UsageSince reads the time with whose day a list of usage begins, as Since does. A number of days ends with today, and a date is the same in each time
// zone.
func UsageSince(text string, now time.Time) (time.Time, error) {
	at, err := Since(cmp.Or(text, usualSince), now)
	if date, isDate := time.Parse(time.DateOnly, text); isDate == nil {
		return date.Add(12 * time.Hour), nil
	}
	if days.MatchString(cmp.Or(text, usualSince)) {
		at = at.AddDate(0, 0, 1)
	}
	return at, err
}

// UsageQuery reads the parameters of a list of usage. The defaults are by agent, since 7d, and all workspaces.
func (s *Service) UsageQuery(by, since, workspace string) (q usage.Query, err error) {
	var faults event.FieldErrors
	q.By, q.Workspace = usage.By(cmp.Or(by, string(usage.ByAgent))), workspace
	faults.Check(slices.Contains(usage.Kinds(), q.By), "by", "must be one of "+strings.Join(UsageBys(), ", "))
	q.Since, err = UsageSince(since, s.Now())
	faults.Check(err == nil, "since", errSince.Error())
	if len(faults) > 0 {
		return q, faults
	}
	return q, nil
}

// Usage returns what the runs that have ended have used, the newest day first, or else the row with the most tokens first. The people and the
// channels need the role reader.
func (s *Service) Usage(ctx context.Context, by Caller, q usage.Query, page Page) (List[Used], error) {
	if (q.By == usage.ByPerson || q.By == usage.ByChannel) && !by.ReadsAll() {
		return List[Used]{}, Fail(http.StatusForbidden, "role", "your role is "+string(by.Role)+", and the usage by "+string(q.By)+" needs the role reader")
	}
	before, err := page.Row() // the number of rows on the pages before
	if err != nil {
		return List[Used]{}, err
	}
	rows, err := s.Journal.Usage.Of(ctx, q)
	if err != nil {
		return List[Used]{}, err
	}
	list := make([]Used, len(rows))
	for i, r := range rows {
		list[i] = usedOf(r)
		if q.By != usage.ByChannel {
			list[i].Workspace = ""
		}
	}
	slices.SortFunc(list, func(a, b Used) int {
		if q.By == usage.ByDay {
			return strings.Compare(b.Key, a.Key)
		}
		return cmp.Or(cmp.Compare(b.Tokens(), a.Tokens()), cmp.Compare(b.Questions, a.Questions), cmp.Compare(b.Minutes, a.Minutes), strings.Compare(a.Key, b.Key), strings.Compare(a.Workspace, b.Workspace))
	})
	list, next := list[min(int(before), len(list)):], ""
	if len(list) > page.Limit {
		list, next = list[:page.Limit], strconv.Itoa(int(before)+page.Limit)
	}
	return pageOf(list, next), s.nameUsed(ctx, by, q.By, list)
}

// usedOf returns the row of some sums.
func usedOf(r usage.Row) Used {
	u := Used{Key: r.Key, Workspace: r.Workspace, Questions: r.Questions, Answers: r.Answers, Failures: r.Failures, Minutes: float64(r.WorkMS/600) / 100}
	if r.Measured > 0 {
		u.TokensIn, u.TokensOut = &r.TokensIn, &r.TokensOut
	}
	return u
}

// nameUsed sets the names of people or channels.
func (s *Service) nameUsed(ctx context.Context, by Caller, kind usage.By, list []Used) error {
	switch kind {
	case usage.ByPerson:
		people, err := s.Journal.People.People(ctx, "")
		if err != nil {
			return err
		}
		names := map[string]string{}
		for _, p := range people {
			names[p.SenderID] = p.Name
		}
		for i := range list {
			list[i].Name = names[list[i].Key]
		}
	case usage.ByChannel:
		name, end := s.ChannelNames(ctx, by)
		defer end()
		for i := range list {
			list[i].Name = name(list[i].Workspace, list[i].Key, true) // the caller may read all
		}
	case usage.ByAgent, usage.ByDay, usage.ByWorkspace:
	}
	return nil
}

// Usage returns the usage that a query chooses.
func (c *Client) Usage(ctx context.Context, query url.Values) (List[Used], error) {
	return Get[List[Used]](ctx, c, "usage", query)
}
