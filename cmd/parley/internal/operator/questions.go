package operator

import (
	"context"
	"net/url"
	"time"

	"parley/config"
	"parley/ingest/event"
	"parley/ingest/stream"
)

var questionRoutes = []Route{
	{Pattern: "GET questions", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.Questions(c.Context(), c.By, page)
	}},
	{Pattern: "POST questions/{run}/answer", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var a Answer
		if err := c.Bind(&a); err != nil {
			return nil, err
		}
		return s.Answer(c.Context(), c.Write(a.Note), c.Path("run"), a)
	}},
}

// Question is an open question of an agent.
type Question struct {
	Run       string          `json:"run"` // that asked it
	Agent     string          `json:"agent"`
	Workspace string          `json:"workspace"`
	Thread    event.ThreadKey `json:"thread"`
	ThreadID  string          `json:"thread_id"`
	AskedAt   time.Time       `json:"asked_at"`
	UntilAt   time.Time       `json:"until_at"`
	Approval  bool            `json:"approval"`
	Text      string          `json:"text"`    // empty if the caller may not read it
	Options   []stream.Option `json:"options"` // none if the caller may not read them
	// MayAnswer tells that the caller may answer it.
	MayAnswer bool `json:"may_answer"`
}

// Questions returns a page of the open questions, the one whose time ends first before the others.
func (s *Service) Questions(ctx context.Context, by Caller, page Page) (List[Question], error) {
	rows, more, err := s.Journal.Listing.Questions(ctx, page.Before, page.Limit)
	if err != nil {
		return List[Question]{}, err
	}
	items, next := make([]Question, len(rows)), ""
	for i := range rows {
		q := &rows[i]
		items[i] = Question{
			Run: q.Run, Agent: q.Agent, Workspace: q.Thread.Workspace, Thread: q.Thread.Key, ThreadID: q.Thread.ID, AskedAt: q.AskedAt, UntilAt: q.UntilAt,
			Approval: q.Approval, Options: []stream.Option{}, MayAnswer: by.Role.Has(config.RoleOperator) && s.mayAnswer(&q.Question, by.ID),
		}
		if q.Thread.Room || by.ReadsAll() {
			items[i].Text, items[i].Options = q.Text, append(items[i].Options, q.Options...)
		}
		next = q.QuestionCursor()
	}
	return listOf(items, more, func(Question) string { return next }), nil
}

// Questions returns a page of the open questions.
func (c *Client) Questions(ctx context.Context, query url.Values) (List[Question], error) {
	return Get[List[Question]](ctx, c, "questions", query)
}
