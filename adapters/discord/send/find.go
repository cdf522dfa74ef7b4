package send

import (
	"context"
	"slices"
	"time"

	"parley/adapters"
)

// nonceFor is the time since a post's first call for which Discord surely enforces its
// nonce. Discord says "the past few minutes".
// https://docs.discord.com/developers/resources/message#create-message
const nonceFor = 2 * time.Minute

// Find looks for a post. Our own event, or the answer to an earlier call, names its nonce. Without
// either, other posts may look the same; see List. So while Discord enforces the nonce, Find posts
// again under it if List finds any, which returns the first post.
func (s *Sender) Find(ctx context.Context, post adapters.Post) (string, bool, error) {
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	if id := s.memory.Nonces.Find(post.Key); id != "" {
		return id, true, nil
	}
	if s.client.Now().Sub(post.NotBefore) >= nonceFor {
		return "", false, nil
	}
	ids, err := s.list(ctx, post)
	others := s.memory.Nonces.Others(post.Key)
	if err != nil {
		return "", false, err
	}
	if !slices.ContainsFunc(ids, func(id string) bool { return !others[id] }) {
		s.release(ctx, post)
		return "", false, nil
	}
	id, err := s.Send(ctx, post)
	return id, err == nil, err
}
