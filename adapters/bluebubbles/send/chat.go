package send

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

// services are the beginnings of a chat's guid.
var services = []string{"iMessage", "any", "SMS"}

// Address returns the chat's name. The Place is the guid of the answered message.
func (s *Sender) Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	name, ok := strings.CutPrefix(string(thread), string(payload.ThreadKey(s.client.Workspace, "")))
	if !ok || name == "" {
		return adapters.Address{}, fmt.Errorf("%q is not a chat of workspace %s on BlueBubbles", thread, s.client.Workspace)
	}
	return adapters.Address{Channel: name, Place: answered}, nil
}

// chatGUID returns the guid by which the server knows a chat: that of its newest message, else that
// of the answered message, else the first one that the server knows.
func (s *Sender) chatGUID(ctx context.Context, to adapters.Address) (string, error) {
	if guid := s.client.Chats.GUID(to.Channel); guid != "" {
		return guid, nil
	}
	guid, err := s.askChat(ctx, to)
	if err == nil {
		s.client.Chats.Saw(guid, time.Time{})
	}
	return guid, err
}

func (s *Sender) askChat(ctx context.Context, to adapters.Address) (string, error) {
	if to.Place != "" {
		raw, err := s.client.Message(ctx, to.Place)
		if err == nil {
			if p := payload.Parse(s.client.Row(raw)); p.Err == nil && p.Chat != nil && payload.ChatName(p.Chat.GUID) == to.Channel {
				return p.Chat.GUID, nil
			}
		} else if !call.IsMissing(err) {
			return "", err
		}
	}
	for _, service := range services {
		for _, kind := range []string{";-;", ";+;"} {
			var found struct {
				GUID string `json:"guid"`
			}
			err := s.client.Call(ctx, http.MethodGet, "chat/"+call.Escape(service+kind+to.Channel), nil, nil, &found)
			if err == nil && found.GUID != "" {
				return found.GUID, nil
			}
			if err != nil && !call.IsMissing(err) {
				return "", err
			}
		}
	}
	return "", adapters.Permanently("the server does not know the chat " + to.Channel)
}

// OpenDirect finds the direct chat with an address. The server opens none before its first message.
func (s *Sender) OpenDirect(ctx context.Context, user string) (string, error) {
	name := payload.ConfiguredID(user)
	_, err := s.chatGUID(ctx, adapters.Address{Channel: name})
	return name, err
}
