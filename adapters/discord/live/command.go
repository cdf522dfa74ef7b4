package live

import (
	"context"
	"net/http"

	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
	"parley/ingest/wake"
)

// upsertCommands registers the commands globally. Commands with other names stay.
// https://docs.discord.com/developers/interactions/application-commands#create-global-application-command
func (a *accepts) upsertCommands(ctx context.Context, app string) {
	for wait := a.Limits.BackoffMin; ; wait = min(2*wait, a.Limits.BackoffMax) {
		var err error
		for _, c := range payload.Commands {
			if err == nil {
				err = a.client.Send(ctx, http.MethodPost, "/applications/"+app+"/commands", c, nil)
			}
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		a.link.Log.Warn("the commands are not registered", "err", err)
		if call.Status(err) != 0 || !wake.After(ctx, wait) {
			return
		}
	}
}
