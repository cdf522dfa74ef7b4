package send

import (
	"context"
	"errors"
	"net/http"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
)

// OpenDirect returns the channel of the direct messages with a user. Discord opens it once, and refuses a person who
// takes no direct messages at the first post. The channel is remembered, because Discord does not list it for backfill.
// https://docs.discord.com/developers/resources/user#create-dm
func (s *Sender) OpenDirect(ctx context.Context, user string) (string, error) {
	var channel struct{ ID string }
	err := s.client.Send(ctx, http.MethodPost, "/users/@me/channels", map[string]string{"recipient_id": user}, &channel)
	if err == nil && !payload.IsID(channel.ID) {
		err = &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer has no channel id")}
	}
	if err != nil {
		return "", call.WithAction("open the direct messages", err)
	}
	if err := s.memory.Servers.RememberDirect(ctx, s.memory.State, channel.ID); err != nil {
		return "", &adapters.SendError{Failure: adapters.NotSent, Err: err}
	}
	return channel.ID, nil
}
