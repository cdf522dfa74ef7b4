package discord

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
)

// questionsName is the name of the questions with a thread of their own in the state.
const questionsName = "questions"

// question is a message whose thread has the message's id.
type question struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	Opened  bool   `json:"opened,omitempty"`
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

// openThread opens the thread of a post if it is the thread of a question that has none yet.
// https://docs.discord.com/developers/resources/channel#start-thread-from-message
func (a *Adapter) openThread(ctx context.Context, post adapters.Post) error {
	state := a.state.Load()
	if !a.AutoThread || state == nil {
		return nil
	}
	list, err := adapters.GetList[question](ctx, *state, questionsName)
	if err != nil {
		return &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read the questions: %w", err)}
	}
	at := slices.IndexFunc(list, func(q question) bool { return q.ID == post.To.Channel })
	if at < 0 || list[at].Opened {
		return nil
	}
	body := discordgo.ThreadStart{Name: threadName(post.Text), AutoArchiveDuration: 1440}
	err = a.send(ctx, http.MethodPost, messagePath(list[at].Channel, post.To.Channel)+"/threads", body, nil)
	if err != nil && refusedCode(err) != codeThreadExists {
		return sendError("open a thread in discord channel "+list[at].Channel, adapters.WithoutEffect(err))
	}
	err = adapters.UpdateList(ctx, *state, questionsName, func(list []question) []question {
		for i := range list {
			list[i].Opened = list[i].Opened || list[i].ID == post.To.Channel
		}
		return list
	})
	if err != nil {
		return &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("store a question: %w", err)}
	}
	return nil
}

// threadName returns the name of a thread: the beginning of its first answer.
func threadName(text string) string {
	const most = 80 // Discord allows 100 characters
	name := []rune(firstLine(text))
	if len(name) > most {
		name = append(name[:most-1], '…')
	}
	if len(name) == 0 {
		return "Answer"
	}
	return string(name)
}
