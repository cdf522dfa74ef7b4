package bluebubbles

import (
	"context"
	"net/http"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
)

// ShowWorking shows that the agent works, as configured, if the server has the private API.
func (a *Adapter) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	return a.sign(ctx, sign, http.MethodPost, payload.WorkingTapback)
}

// ClearWorking ends the sign. Messages also ends the typing sign when our message arrives.
func (a *Adapter) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	return a.sign(ctx, sign, http.MethodDelete, "-"+payload.WorkingTapback)
}

// sign types, or reacts on the question. It is no error if the question is gone.
func (a *Adapter) sign(ctx context.Context, sign adapters.Sign, typing, reaction string) error {
	chat, private, err := a.destination(ctx, sign.To)
	switch {
	case err != nil || !private:
		return err
	case a.config.Working == WorkingTyping:
		return a.call(ctx, typing, "chat/"+escape(chat)+"/typing", nil, nil, nil)
	case a.config.Working == WorkingReaction && isGUID(sign.Message):
		err = a.call(ctx, http.MethodPost, "message/react", nil, map[string]any{
			"chatGuid": chat, "selectedMessageGuid": sign.Message, "reaction": reaction, "partIndex": 0,
		}, nil)
	}
	if isMissing(err) {
		return nil
	}
	return err
}
