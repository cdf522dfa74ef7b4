package send

import (
	"context"
	"errors"
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
// of the answered message, else the first one that the server knows. It is empty for an address without a chat.
func (s *Sender) chatGUID(ctx context.Context, to adapters.Address) (string, error) {
	if guid := s.client.Chats.GUID(to.Channel); guid != "" {
		return guid, nil
	}
	guid, err := s.askChat(ctx, to)
	if err == nil && guid != "" {
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
	if isAddress(to.Channel) {
		return "", nil
	}
	return "", adapters.Permanently("the server does not know the chat " + to.Channel)
}

// OpenDirect returns the name of the direct chat with an address. The server makes the chat with its first message.
func (s *Sender) OpenDirect(_ context.Context, user string) (string, error) {
	if !isAddress(user) {
		return "", adapters.Permanently("an iMessage goes to a telephone number or an e-mail address")
	}
	return user, nil
}

// isAddress reports whether a chat's name is the address of a person.
func isAddress(name string) bool {
	return strings.ContainsRune(name, '@') || len(name) > 2 && strings.Trim(strings.TrimPrefix(name, "+"), "0123456789") == ""
}

// begin makes the direct chat with an address, which the server does not know, by its first message.
// https://docs.bluebubbles.app/server/developer-guides/rest-api-and-webhooks
func (s *Sender) begin(ctx context.Context, post adapters.Post, private bool) (string, error) {
	if post.File != nil {
		return "", adapters.Permanently("a file can't begin a chat: send a text first")
	}
	var made struct {
		GUID     string `json:"guid"`
		Messages []struct {
			GUID string `json:"guid"`
		} `json:"messages"`
	}
	err := s.client.Call(ctx, http.MethodPost, "chat/new", nil, map[string]any{
		"addresses": []string{post.To.Channel}, "message": post.Text, "method": method(private), "service": services[0], "tempGuid": tempGUID(post.Key),
	}, &made)
	switch {
	case err != nil:
		return "", err
	case len(made.Messages) == 0 || made.Messages[0].GUID == "":
		return "", &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer has no message")}
	}
	s.client.Chats.Saw(made.GUID, time.Time{})
	return made.Messages[0].GUID, nil
}
