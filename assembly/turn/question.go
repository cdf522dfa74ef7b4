package turn

import (
	"context"
	"errors"

	"parley/assembly"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// question returns the question with which the run ends; nil for none.
func (a *attempt) question() *runs.Question {
	if a.said.asks == nil {
		return nil
	}
	q := &runs.Question{Ask: a.said.asks.Ask(), Details: a.said.asks.Details, UntilAt: a.Now().Add(a.profile.AnswerWithin)}
	if at := q.ExpiresAt; !at.IsZero() && at.Before(q.UntilAt) {
		q.UntilAt = at
	}
	return q
}

// resume returns the question that the run answers; nil for none.
func (a *attempt) resume(ctx context.Context) (*assembly.Resume, error) {
	if a.run.Question == "" {
		return nil, nil
	}
	q, err := a.Runs.Question(ctx, a.run.Question)
	switch {
	case errors.Is(err, storage.ErrNotFound): // it is too old
		return nil, nil
	case err != nil || q.Agent != a.run.Agent: // or another agent asked
		return nil, err
	}
	asked, err := a.Runs.AgentID(ctx, a.run.Thread, q.Run)
	if err != nil {
		return nil, err
	}
	r := &assembly.Resume{RunID: asked, Details: q.Details}
	if q.Answer != nil {
		r.Answered, r.Option, r.Text = true, q.Answer.Option, q.Answer.Text
	}
	return r, nil
}
