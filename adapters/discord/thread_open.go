package discord

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/markdown"
)

// questionsName is the name of the questions with a thread of their own in the state.
const questionsName = "questions"

// question is a message whose thread has the message's id.
type question struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	Opened  bool   `json:"opened,omitempty"`
	Refused bool   `json:"refused,omitempty"` // the answer is in the question's channel
}

// rememberQuestion stores the channel of a question, because the key of its thread has only the
// question's id.
func rememberQuestion(ctx context.Context, state adapters.State, id, channel string) error {
	err := adapters.UpdateList(ctx, state, questionsName, func(list []question) []question {
		if slices.ContainsFunc(list, func(q question) bool { return q.ID == id }) {
			return list
		}
		return append(list, question{ID: id, Channel: channel})
	})
	if err != nil {
		return fmt.Errorf("store a question: %w", err)
	}
	return nil
}

// question returns the question whose own thread has an id; nil for none. The stored question
// decides about the place of its answer, also after a change of the setting.
func (a *Adapter) question(ctx context.Context, thread string) (*question, error) {
	list, err := adapters.GetList[question](ctx, a.state, questionsName)
	if err != nil {
		return nil, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read the questions: %w", err)}
	}
	if at := slices.IndexFunc(list, func(q question) bool { return q.ID == thread }); at >= 0 {
		return &list[at], nil
	}
	return nil, nil
}

// place returns a post of the question's thread with the channel that holds it: the question's, if
// Discord refuses the thread.
func (q *question) place(post adapters.Post) adapters.Post {
	if q != nil && q.Refused {
		post.To.Channel = q.Channel
	}
	return post
}

// placed returns a post with the channel that holds it.
func (a *Adapter) placed(ctx context.Context, post adapters.Post) (adapters.Post, error) {
	q, err := a.question(ctx, post.To.Channel)
	return q.place(post), err
}

// openThread opens the thread of a post if it is the thread of a question that has none yet. It
// returns the post with the channel that holds it. Discord refuses a thread in the chat of a voice
// channel, without the permission for threads, and in a server with a thousand active threads.
// https://docs.discord.com/developers/resources/channel#start-thread-from-message
func (a *Adapter) openThread(ctx context.Context, post adapters.Post) (adapters.Post, error) {
	q, err := a.question(ctx, post.To.Channel)
	if err != nil || q == nil || q.Opened || q.Refused {
		return q.place(post), err
	}
	body := discordgo.ThreadStart{Name: threadName(post.Text), AutoArchiveDuration: 1440}
	err = a.send(ctx, http.MethodPost, messagePath(q.Channel, q.ID)+"/threads", body, nil)
	status := refusedStatus(err)
	q.Opened = err == nil || refusedCode(err) == discordgo.ErrCodeThreadAlreadyCreatedForThisMessage
	q.Refused = !q.Opened && (status == http.StatusBadRequest || status == http.StatusForbidden)
	if !q.Opened && !q.Refused {
		return post, sendError("open a thread in discord channel "+q.Channel, adapters.WithoutEffect(err))
	}
	err = adapters.UpdateList(ctx, a.state, questionsName, func(list []question) []question {
		for i := range list {
			if list[i].ID == q.ID {
				list[i] = *q
			}
		}
		return list
	})
	if err != nil {
		return post, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("store a question: %w", err)}
	}
	return q.place(post), nil
}

// threadName returns the name of a thread: the beginning of its first answer.
func threadName(text string) string {
	const most = 80 // Discord allows 100 characters
	name := firstLine(text)
	if utf8.RuneCountInString(name) > most {
		name = strings.TrimSpace(markdown.Beginning(name, most-1)) + "…"
	}
	return cmp.Or(name, "Answer")
}
