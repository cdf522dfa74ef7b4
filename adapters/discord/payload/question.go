package payload

import (
	"context"
	"fmt"
	"slices"

	"parley/adapters"
)

// questionsName is the name of the questions with a thread of their own in the state.
const questionsName = "questions"

// Question is a message whose thread has the message's id.
type Question struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	Opened  bool   `json:"opened,omitempty"`
	Refused bool   `json:"refused,omitempty"` // the answer is in the question's channel
}

// rememberQuestion stores the channel of a question, because the key of its thread has only the
// question's id.
func rememberQuestion(ctx context.Context, state adapters.State, id, channel string) error {
	err := adapters.UpdateList(ctx, state, questionsName, func(list []Question) []Question {
		if slices.ContainsFunc(list, func(q Question) bool { return q.ID == id }) {
			return list
		}
		return append(list, Question{ID: id, Channel: channel})
	})
	if err != nil {
		return fmt.Errorf("store a question: %w", err)
	}
	return nil
}

// QuestionOf returns the question whose own thread has an id; nil for none. The stored question
// decides about the place of its answer, also after a change of the setting. Its error is an
// *adapters.SendError.
func QuestionOf(ctx context.Context, state adapters.State, thread string) (*Question, error) {
	list, err := adapters.GetList[Question](ctx, state, questionsName)
	if err != nil {
		return nil, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read the questions: %w", err)}
	}
	if at := slices.IndexFunc(list, func(q Question) bool { return q.ID == thread }); at >= 0 {
		return &list[at], nil
	}
	return nil, nil
}

// Store stores the changed question, if it is still known. Its error is an *adapters.SendError.
func (q *Question) Store(ctx context.Context, state adapters.State) error {
	err := adapters.UpdateList(ctx, state, questionsName, func(list []Question) []Question {
		for i := range list {
			if list[i].ID == q.ID {
				list[i] = *q
			}
		}
		return list
	})
	if err != nil {
		return &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("store a question: %w", err)}
	}
	return nil
}

// Place returns a post of the question's thread with the channel that holds it: the question's, if
// Discord refuses the thread.
func (q *Question) Place(post adapters.Post) adapters.Post {
	if q != nil && q.Refused {
		post.To.Channel = q.Channel
	}
	return post
}

// Placed returns a post with the channel that holds it.
func Placed(ctx context.Context, state adapters.State, post adapters.Post) (adapters.Post, error) {
	q, err := QuestionOf(ctx, state, post.To.Channel)
	return q.Place(post), err
}
