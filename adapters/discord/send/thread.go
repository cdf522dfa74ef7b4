package send

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
	"parley/adapters/markdown"
)

// openThread opens the thread of a post if it is the thread of a question that has none yet. It
// returns the post with the channel that holds it. Discord refuses a thread in the chat of a voice
// channel, without the permission for threads, and in a server with a thousand active threads.
// https://docs.discord.com/developers/resources/channel#start-thread-from-message
func (s *Sender) openThread(ctx context.Context, post adapters.Post) (adapters.Post, error) {
	q, err := payload.QuestionOf(ctx, s.memory.State, post.To.Channel)
	if err != nil || q == nil || q.Opened || q.Refused {
		return q.Place(post), err
	}
	body := discordgo.ThreadStart{Name: threadName(post.Text), AutoArchiveDuration: 1440}
	err = s.client.Send(ctx, http.MethodPost, call.MessagePath(q.Channel, q.ID)+"/threads", body, nil)
	status := call.Status(err)
	q.Opened = err == nil || call.Code(err) == discordgo.ErrCodeThreadAlreadyCreatedForThisMessage
	q.Refused = !q.Opened && (status == http.StatusBadRequest || status == http.StatusForbidden)
	if !q.Opened && !q.Refused {
		return post, call.WithAction("open a thread in discord channel "+q.Channel, adapters.WithoutEffect(err))
	}
	if err := q.Store(ctx, s.memory.State); err != nil {
		return post, err
	}
	return q.Place(post), nil
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
