package read

import (
	"context"

	"parley/adapters"
	"parley/adapters/discord/payload"
)

// Link returns the address of a message in Discord's own clients. The server of a direct message is @me.
func (r *Reader) Link(ctx context.Context, to adapters.Address, id string) string {
	post, err := payload.Placed(ctx, r.memory.State, adapters.Post{To: to})
	if err != nil || !payload.IsID(id) {
		return ""
	}
	guild, known := r.guilds.Load(post.To.Channel)
	if !known {
		if guild, _, err = r.placeOf(ctx, post.To.Channel); err != nil {
			return ""
		}
		r.guilds.Store(post.To.Channel, guild)
	}
	return payload.Link(guild.(string), post.To.Channel, id)
}
