package send

import (
	"context"
	"net/http"

	"parley/adapters"
	"parley/adapters/emoji"
)

// tapbacks are the names of the reactions that BlueBubbles sends, by the names of their emoji.
var tapbacks = map[string]string{
	"heart": "love", "+1": "like", "-1": "dislike", "joy": "laugh", "rolling_on_the_floor_laughing": "laugh", "bangbang": "emphasize",
	"heavy_exclamation_mark": "emphasize", "exclamation": "emphasize", "question": "question",
}

// Emoji implements adapters.Reactor: Messages has six tapbacks.
func (s *Sender) Emoji(given string) (string, bool) {
	name, _ := emoji.Name(given)
	tapback, ok := tapbacks[name]
	return tapback, ok
}

// React implements adapters.Reactor. Messages shows a tapback that is added again once.
func (s *Sender) React(ctx context.Context, sign adapters.Sign) error {
	chat, private, err := s.destination(ctx, sign.To)
	switch {
	case err != nil:
		return err
	case !private:
		return adapters.Permanently("the BlueBubbles server needs the private API for reactions")
	case !isGUID(sign.Message):
		return adapters.Permanently("iMessage has no message that can get the reaction")
	}
	return s.react(ctx, chat, sign.Message, sign.Text)
}

// react adds a tapback to a message, or removes one whose name begins with "-".
func (s *Sender) react(ctx context.Context, chat, message, reaction string) error {
	return s.client.Call(ctx, http.MethodPost, "message/react", nil, map[string]any{
		"chatGuid": chat, "selectedMessageGuid": message, "reaction": reaction, "partIndex": 0,
	}, nil)
}
