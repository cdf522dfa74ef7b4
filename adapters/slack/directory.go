package slack

import (
	"context"
	"errors"
	"fmt"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/ingest/event"
)

// LookupUser calls users.info. The returned name is the one that Slack shows: the
// display name, else the full name, else the handle.
func (a *Adapter) LookupUser(ctx context.Context, id string) (adapters.User, error) {
	user, err := a.api.GetUserInfoContext(ctx, id)
	if answer, ok := errors.AsType[slack.SlackErrorResponse](err); ok && answer.Err == "user_not_found" {
		err = fmt.Errorf("%w: %w", err, adapters.ErrNoUser)
	}
	if err != nil {
		return adapters.User{}, fmt.Errorf("look up slack user %s: %w", id, err)
	}
	name := firstOf(user.Profile.DisplayName, user.Profile.RealName, user.RealName, user.Name)
	return adapters.User{DisplayName: event.Text(name), IsBot: user.IsBot || user.ID == slackbotUser}, nil
}
