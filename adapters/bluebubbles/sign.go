package bluebubbles

import (
	"context"
	"net/http"

	"parley/adapters"
)

// ShowWorking shows that we type, if the server has the private API.
func (a *Adapter) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	return a.typing(ctx, http.MethodPost, sign)
}

// ClearWorking ends the sign. Messages also ends it when our message arrives.
func (a *Adapter) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	return a.typing(ctx, http.MethodDelete, sign)
}

func (a *Adapter) typing(ctx context.Context, method string, sign adapters.Sign) error {
	chat, private, err := a.destination(ctx, sign.To)
	if err != nil || !private {
		return err
	}
	return a.call(ctx, method, "chat/"+escape(chat)+"/typing", nil, nil, nil)
}
