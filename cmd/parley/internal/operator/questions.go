package operator

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"parley/adapters/web/threads"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
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
	Channel   string          `json:"channel"`
	// ChannelName, Asker and Request are empty if they are not known or if the caller may not read them. Asker is the name of the person
	// whose message the agent works on, and AskerID the person's id; Request is the beginning of that message.
	ChannelType event.ChannelType `json:"channel_type"` // room, direct or group; empty if it is not known
	ChannelName string            `json:"channel_name"`
	Asker       string            `json:"asker"`
	AskerID     string            `json:"asker_id"`
	Request     string            `json:"request"`
	Text        string            `json:"text"`    // without the options; empty if the caller may not read it
	Options     []stream.Option   `json:"options"` // none if the caller may not read them
	// Details are what the agent gives with its question, such as a plan or the call of a tool; absent for nothing but the options, and if
	// the caller may not read them.
	Details json.RawMessage `json:"details,omitempty"`
	// MayAnswer tells that the caller may answer it.
	MayAnswer bool `json:"may_answer"`
}

// Questions returns a page of the open questions, the one whose time ends first before the others.
func (s *Service) Questions(ctx context.Context, by Caller, page Page) (List[Question], error) {
	rows, more, err := s.Journal.Listing.Questions(ctx, page.Before, page.Limit)
	if err != nil {
		return List[Question]{}, err
	}
	name, end := s.ChannelNames(ctx, by)
	defer end()
	items, next := make([]Question, len(rows)), ""
	for i := range rows {
		q := &rows[i]
		items[i] = Question{
			Run: q.Run, Agent: q.Agent, Workspace: q.Thread.Workspace, Thread: q.Thread.Key, ThreadID: q.Thread.ID, AskedAt: q.AskedAt, UntilAt: q.UntilAt,
			Channel: q.Thread.Channel, ChannelType: q.Thread.Type, ChannelName: name(q.Thread.Workspace, q.Thread.Channel, q.Thread.Room),
			Approval: q.Approval, Options: []stream.Option{}, MayAnswer: by.Role.Has(config.RoleOperator) && s.mayAnswer(&q.Question, by.ID),
		}
		if by.Reads(q.Thread.Room) {
			items[i].read(q)
		}
		next = q.QuestionCursor()
	}
	return listOf(items, more, func(Question) string { return next }), nil
}

// maxRequest bounds the words of the request that a question is about, and maxDetails the details of the agent, in bytes.
const maxRequest, maxDetails = 500, 8 << 10

// read adds what only those see who may read the thread.
func (out *Question) read(q *listing.Question) {
	out.Text, out.Options = strings.TrimSuffix(q.Text, q.Numbered("")), append(out.Options, q.Options...)
	if q.First.SenderID != "" {
		out.Asker, out.AskerID = Author(q.First.SenderID, q.First.Metadata), q.First.SenderID
		out.Request = event.Cut(threads.Display(&q.First), maxRequest)
	}
	var details map[string]json.RawMessage
	if json.Unmarshal(q.Details, &details) != nil {
		return // they are no object, so they have no options either
	}
	for _, known := range []string{"ux", "approval", "expires_at"} {
		delete(details, known)
	}
	if raw, err := json.Marshal(details); err == nil && len(details) > 0 && len(raw) <= maxDetails {
		out.Details = raw
	}
}

// Questions returns a page of the open questions.
func (c *Client) Questions(ctx context.Context, query url.Values) (List[Question], error) {
	return Get[List[Question]](ctx, c, "questions", query)
}
