package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Interaction is a command or a press of a button, with the bot's response to it.
type Interaction struct {
	ID, Token, Channel string
	// Type is the type of the callback; 0 until it arrives. Flags are its flags.
	Type, Flags int
	Content     string // of an immediate response
	Answer      string // the id of the answer's message; empty without one
	// FollowUps are the ids of the further messages that everybody sees.
	FollowUps []string
	at        time.Time
}

// hookFor is the time for which the token of an interaction is valid.
// https://docs.discord.com/developers/interactions/receiving-and-responding#followup-messages
const hookFor = 15 * time.Minute

// ephemeral is the flag of a message that one user sees.
const ephemeral = 1 << 6

// Ask sends an interaction of a user in a channel: its type, and its data as Discord names it.
func (s *Server) Ask(channel, user string, kind int, data map[string]any, extra map[string]any) (i Interaction, e Event) {
	s.change(func() {
		c := s.channels[channel]
		i = Interaction{ID: s.newID(), Channel: channel, at: s.options.Now()}
		i.Token = "interaction-token-" + i.ID
		stored := i
		s.asked[i.Token] = &stored
		wire := c.place(map[string]any{
			"id": i.ID, "application_id": App, "type": kind, "token": i.Token, "version": 1, "data": data, "locale": "en-US", "channel": c.wire(len(c.messages)),
		})
		if g := s.guilds[c.Guild]; g != nil {
			wire["member"] = s.member(g, user)
		} else {
			wire["user"] = s.users[user].wire()
		}
		maps.Copy(wire, extra)
		e = s.dispatch(c.Guild, "INTERACTION_CREATE", wire)
	})
	return i, e
}

// Command sends the slash command /ask with a text.
func (s *Server) Command(channel, user, text string) (Interaction, Event) {
	return s.Ask(channel, user, 2, map[string]any{"id": "1", "name": "ask", "type": 1, "options": []any{map[string]any{"type": 3, "name": "question", "value": text}}}, nil)
}

// ChatCommand sends a slash command without a text.
func (s *Server) ChatCommand(channel, user, name string) (Interaction, Event) {
	return s.Ask(channel, user, 2, map[string]any{"id": "1", "name": name, "type": 1}, nil)
}

// Asked returns the present state of an interaction.
func (s *Server) Asked(token string) Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.asked[token]
}

// AwaitAsked waits until ok returns true for the present state of an interaction.
func (s *Server) AwaitAsked(ctx context.Context, token string, ok func(Interaction) bool) (i Interaction, err error) {
	err = s.await(ctx, func() bool {
		i = *s.asked[token]
		return ok(i)
	})
	return i, err
}

// Commands returns the registered commands by name and type, and the number of upserts.
func (s *Server) Commands() (commands map[string]json.RawMessage, upserts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.commands), s.upserts
}

func interactionHandlers() map[string]handler {
	return map[string]handler{
		Callback: (*Server).callback,
		EditAnswer: func(s *Server, r request) any {
			if i := s.asked[r.PathValue("token")]; i != nil && i.Type == 4 && i.Flags&ephemeral != 0 {
				var b response
				r.decode(&b)
				i.Content = b.Content
				return map[string]any{"id": s.newID()}
			}
			return s.withAnswer(r, func(c *channel, m *Message) any {
				return s.edit(c, m, r)
			})
		},
		GetAnswer: func(s *Server, r request) any {
			return s.withAnswer(r, func(_ *channel, m *Message) any { return s.wire(m) })
		},
		EndAnswer: func(s *Server, r request) any {
			return s.withAnswer(r, func(c *channel, m *Message) any {
				s.removed(c, c.drop(m.ID))
				return nil
			})
		},
		FollowUp: (*Server).followUp,
		Upsert: func(s *Server, r request) any {
			var b struct {
				Name string `json:"name"`
				Type int    `json:"type"`
			}
			r.decode(&b)
			s.upserts++
			s.commands[fmt.Sprintf("%s/%d", b.Name, max(b.Type, 1))] = r.Call.Body
			return r.Call.Body
		},
		GetCommands: func(s *Server, _ request) any {
			list := []json.RawMessage{}
			for _, c := range s.commands {
				list = append(list, c)
			}
			return list
		},
		Overwrite: func(s *Server, _ request) any {
			clear(s.commands)
			return []any{}
		},
	}
}

// loading is the flag of a deferred answer.
const loading = 1 << 7

// response is the body of an immediate response, and of a further one.
type response struct {
	Content string `json:"content"`
	Flags   int    `json:"flags"`
	parts
}

// callback responds to an interaction, once.
// https://docs.discord.com/developers/interactions/receiving-and-responding
func (s *Server) callback(r request) any {
	i := s.asked[r.PathValue("token")]
	switch {
	case i == nil || i.ID != r.PathValue("interaction"):
		return refusal{http.StatusNotFound, 10062, "Unknown interaction"}
	case i.Type != 0:
		return refusal{http.StatusBadRequest, 40060, "Interaction has already been acknowledged."}
	}
	var b struct {
		Type int      `json:"type"`
		Data response `json:"data"`
	}
	r.decode(&b)
	i.Type, i.Flags, i.Content = b.Type, b.Data.Flags, b.Data.Content
	c := s.channels[i.Channel]
	switch {
	case b.Data.Flags&ephemeral != 0:
	case b.Type == 5:
		m := &Message{Channel: c.ID, Author: BotUser, Type: 20, Flags: loading}
		s.add(m)
		i.Answer = m.ID
	case b.Type == 4:
		m := &Message{Channel: c.ID, Author: BotUser, Type: 20, Content: b.Data.Content}
		i.Answer = s.posts(c, m).ID
	}
	return nil
}

// followUp posts a further message, in every channel: one user sees an ephemeral one. The nonce has no
// effect.
// https://docs.discord.com/developers/interactions/receiving-and-responding#create-followup-message
func (s *Server) followUp(r request) any {
	i, refused := s.hook(r)
	if refused != nil {
		return *refused
	}
	var b response
	r.decode(&b)
	if b.Flags&ephemeral != 0 {
		i.Flags, i.Content = b.Flags, b.Content
		return map[string]any{"id": s.newID()}
	}
	c := s.channels[i.Channel]
	m := &Message{Channel: c.ID, Author: BotUser, Content: b.Content, Flags: b.Flags, Body: r.Call.Body, ReplyTo: i.Answer}
	if refused := s.show(m, b.parts, len(r.Files)); refused != nil {
		return *refused
	}
	m.Files = s.store(c.ID, r.Files)
	m = s.posts(c, m)
	i.FollowUps = append(i.FollowUps, m.ID)
	return s.wire(m)
}

// hook returns the interaction of a call about its messages, or the refusal.
func (s *Server) hook(r request) (*Interaction, *refusal) {
	i := s.asked[r.PathValue("token")]
	switch {
	case i == nil || r.PathValue("app") != App:
		return nil, &unknownHook
	case s.options.Now().Sub(i.at) > hookFor:
		return nil, &endedHook
	}
	return i, nil
}

// withAnswer calls f with a message that answers an interaction, by its id or as @original.
func (s *Server) withAnswer(r request, f func(*channel, *Message) any) any {
	i, refused := s.hook(r)
	if refused != nil {
		return *refused
	}
	c := s.channels[i.Channel]
	named := r.PathValue("message")
	if named == "" || named == "@original" {
		named = i.Answer
	}
	if c == nil || c.byID[named] == nil || named != i.Answer && !slices.Contains(i.FollowUps, named) {
		return unknownMessage
	}
	return f(c, c.byID[named])
}
