package send

import (
	"context"
	"net/http"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
)

// ShowWorking shows that the agent works, as configured, if the server has the private API.
func (s *Sender) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	return s.sign(ctx, sign, http.MethodPost, payload.WorkingTapback)
}

// ClearWorking ends the sign. Messages also ends the typing sign when our message arrives.
func (s *Sender) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	return s.sign(ctx, sign, http.MethodDelete, "-"+payload.WorkingTapback)
}

// sign types, or reacts on the question. It is no error if the question is gone.
func (s *Sender) sign(ctx context.Context, sign adapters.Sign, typing, reaction string) error {
	chat, private, err := s.destination(ctx, sign.To)
	switch {
	case err != nil || !private || chat == "":
		return err
	case s.settings.Working == WorkingTyping:
		return s.client.Call(ctx, typing, "chat/"+call.Escape(chat)+"/typing", nil, nil, nil)
	case s.settings.Working == WorkingReaction && isGUID(sign.Message):
		err = s.react(ctx, chat, sign.Message, reaction)
	}
	if call.IsMissing(err) {
		return nil
	}
	return err
}
