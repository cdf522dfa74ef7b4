package discordtest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Message is a message as it is shown now.
type Message struct {
	ID, Channel, Author, Content string
	Type                         int
	Nonce                        string
	ReplyTo                      string // the id of the message that this one refers to
	Mentions                     []string
	Files                        []File
	Sent, Edited                 time.Time
	Deleted                      bool
	Flags                        int
	Edits                        int
	N                            int             // number of the post among the bot's, from 1
	Reactions                    map[string]int  // the bot's, by emoji
	Body                         json.RawMessage // the last body of the bot's call
	Embeds, Components           json.RawMessage // of the bot's call; nil for none
	Extra                        map[string]any  // further members of the object
}

// maxContent is the maximum length of a message, in characters.
// https://docs.discord.com/developers/resources/message#create-message
const maxContent = 2000

// timeFormat is the form of Discord's times.
const timeFormat = "2006-01-02T15:04:05.000000+00:00"

// wire returns the message as the API returns it. The gateway adds the guild, the member and
// the nonce.
func (s *Server) wire(m *Message) map[string]any {
	wire := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "author": s.users[m.Author].wire(), "content": m.Content, "type": m.Type, "flags": m.Flags,
		"timestamp": m.Sent.UTC().Format(timeFormat), "edited_timestamp": nil, "tts": false, "pinned": false, "mention_everyone": false,
		"mention_roles": []string{}, "embeds": []any{}, "components": []any{},
	}
	if !m.Edited.IsZero() {
		wire["edited_timestamp"] = m.Edited.UTC().Format(timeFormat)
	}
	if m.Embeds != nil {
		wire["embeds"] = m.Embeds
	}
	if m.Components != nil {
		wire["components"] = m.Components
	}
	mentions, files := []any{}, []any{}
	for _, id := range m.Mentions {
		mentions = append(mentions, s.users[id].wire())
	}
	for _, f := range m.Files {
		files = append(files, s.fileWire(f))
	}
	wire["mentions"], wire["attachments"] = mentions, files
	if c := s.channels[m.Channel]; c != nil && c.isThread() {
		wire["position"] = slices.Index(c.messages, m)
	}
	if m.ReplyTo != "" {
		wire["message_reference"] = map[string]any{"type": 0, "channel_id": m.Channel, "message_id": m.ReplyTo}
		wire["referenced_message"] = nil
		if c := s.channels[m.Channel]; c != nil && c.byID[m.ReplyTo] != nil {
			quoted := *c.byID[m.ReplyTo]
			quoted.ReplyTo = ""
			wire["referenced_message"] = s.wire(&quoted)
		}
	}
	maps.Copy(wire, m.Extra)
	return wire
}

// live returns the message as the gateway sends it.
func (s *Server) live(m *Message) map[string]any {
	wire := s.wire(m)
	if m.Nonce != "" {
		wire["nonce"] = m.Nonce
	}
	if c := s.channels[m.Channel]; c != nil && c.Guild != "" {
		wire["guild_id"] = c.Guild
		if g := s.guilds[c.Guild]; g != nil {
			member := s.member(g, m.Author)
			delete(member, "user")
			wire["member"] = member
			for i, id := range m.Mentions {
				mentioned, member := wire["mentions"].([]any)[i].(map[string]any), s.member(g, id)
				delete(member, "user")
				mentioned["member"] = member
			}
		}
	}
	return wire
}

// mentionsIn returns the known users whom a text mentions.
func (s *Server) mentionsIn(text string) (ids []string) {
	for _, part := range strings.Split(text, "<@")[1:] {
		id, _, closed := strings.Cut(strings.TrimPrefix(part, "!"), ">")
		if closed && s.users[id].ID != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// Say adds a message of a user and sends its event. It completes the id, the time and the
// mentions, and returns the message with its event.
func (s *Server) Say(m Message) (Message, Event) {
	var e Event
	s.change(func() { e = s.add(&m) })
	return m, e
}

// Put adds a message of a user as Say does, without an event.
func (s *Server) Put(m Message) Message {
	s.change(func() { s.put(&m) })
	return m
}

// add adds a message to its channel and sends its event.
func (s *Server) add(m *Message) Event {
	stored := s.put(m)
	return s.dispatch(s.channels[m.Channel].Guild, "MESSAGE_CREATE", s.live(stored))
}

// put completes a message and adds it to its channel.
func (s *Server) put(m *Message) *Message {
	c := s.channels[m.Channel]
	if m.Sent.IsZero() {
		m.Sent = s.options.Now()
	}
	if m.ID == "" {
		m.ID = s.newIDAt(m.Sent)
	}
	if m.Mentions == nil {
		m.Mentions = s.mentionsIn(m.Content)
	}
	if m.ReplyTo != "" && m.Type == 0 {
		m.Type = 19
	}
	stored := *m
	c.messages, c.byID[m.ID] = append(c.messages, &stored), &stored
	return &stored
}

// Change edits a message of a user and sends its event.
func (s *Server) Change(channel, id, text string) (e Event) {
	s.change(func() {
		m := s.channels[channel].byID[id]
		m.Content, m.Edited, m.Mentions = text, s.options.Now(), s.mentionsIn(text)
		e = s.dispatch(s.channels[channel].Guild, "MESSAGE_UPDATE", s.live(m))
	})
	return e
}

// Delete deletes messages and sends one event.
func (s *Server) Delete(channel string, ids ...string) (e Event) {
	s.change(func() {
		c := s.channels[channel]
		for _, id := range ids {
			c.drop(id)
		}
		e = s.dispatch(c.Guild, "MESSAGE_DELETE", c.place(map[string]any{"id": ids[0]}))
		if len(ids) > 1 {
			e = s.dispatch(c.Guild, "MESSAGE_DELETE_BULK", c.place(map[string]any{"ids": ids}))
		}
	})
	return e
}

// drop removes a message from the channel.
func (c *channel) drop(id string) *Message {
	m := c.byID[id]
	if m == nil {
		return nil
	}
	delete(c.byID, id)
	m.Deleted = true
	c.messages = slices.DeleteFunc(c.messages, func(o *Message) bool { return o == m })
	return m
}

// place adds the channel and the guild to an event.
func (c *channel) place(wire map[string]any) map[string]any {
	wire["channel_id"] = c.ID
	if c.Guild != "" {
		wire["guild_id"] = c.Guild
	}
	return wire
}

// AddReaction lets a user react, and sends the event.
func (s *Server) AddReaction(channel, message, user, emoji string) (e Event) {
	s.change(func() {
		c := s.channels[channel]
		e = s.dispatch(c.Guild, "MESSAGE_REACTION_ADD", c.place(map[string]any{
			"message_id": message, "user_id": user, "emoji": map[string]any{"id": nil, "name": emoji}}))
	})
	return e
}

// Posts returns the bot's messages that a reader of the channel sees now, oldest first. An
// empty channel means every channel.
func (s *Server) Posts(channel string) (posts []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.channels {
		for _, m := range c.messages {
			if m.Author == BotUser && (channel == "" || c.ID == channel) {
				posts = append(posts, *m)
			}
		}
	}
	slices.SortFunc(posts, func(a, b Message) int { return cmp.Compare(a.ID, b.ID) })
	return posts
}

// TypingCalls returns the number of typing calls in a channel.
func (s *Server) TypingCalls(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typing[channel]
}

// Reactions returns the number of the bot's reactions on a message.
func (s *Server) Reactions(channel, message string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil && c.byID[message] != nil {
		n = len(c.byID[message].Reactions)
	}
	return n
}

func messageHandlers() map[string]handler {
	return map[string]handler{
		Post: (*Server).createMessage,
		Edit: (*Server).editMessage,
		Remove: func(s *Server, r request) any {
			return s.withMessage(r, func(c *channel, m *Message) any {
				s.removed(c, c.drop(m.ID))
				return nil
			})
		},
		Read: (*Server).readMessages,
		ReadOne: func(s *Server, r request) any {
			return s.withMessage(r, func(_ *channel, m *Message) any { return s.wire(m) })
		},
		Typing: func(s *Server, r request) any {
			c, refused := s.visible(r)
			if refused != nil {
				return *refused
			}
			s.typing[c.ID]++
			return nil
		},
		React: func(s *Server, r request) any {
			return s.withMessage(r, func(_ *channel, m *Message) any {
				if m.Reactions == nil {
					m.Reactions = map[string]int{}
				}
				m.Reactions[r.PathValue("emoji")] = 1
				return nil
			})
		},
		Unreact: func(s *Server, r request) any {
			return s.withMessage(r, func(_ *channel, m *Message) any {
				delete(m.Reactions, r.PathValue("emoji"))
				return nil
			})
		},
		OpenThread: (*Server).openThread,
	}
}

// withMessage calls f with the message of a call, or returns the refusal.
func (s *Server) withMessage(r request, f func(*channel, *Message) any) any {
	c, refused := s.visible(r)
	if refused != nil {
		return *refused
	}
	m := c.byID[r.PathValue("message")]
	if m == nil {
		return unknownMessage
	}
	return f(c, m)
}

// body is the body of a call that posts or edits.
type body struct {
	Content      *string         `json:"content"`
	Flags        int             `json:"flags"`
	Nonce        json.RawMessage `json:"nonce"`
	EnforceNonce bool            `json:"enforce_nonce"`
	parts
	Reference *struct {
		MessageID       string `json:"message_id"`
		FailIfNotExists *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// createMessage posts. A repeated nonce returns the first message, as long as it is enforced.
// https://docs.discord.com/developers/resources/message#create-message
func (s *Server) createMessage(r request) any {
	c, refused := s.visible(r)
	if refused != nil {
		return *refused
	}
	if c.ReadOnly {
		return mayNotPost
	}
	if s.users[c.User].NoDirect {
		return refusesDirect
	}
	var b body
	r.decode(&b)
	nonce := strings.Trim(string(b.Nonce), `"`)
	if first := c.nonces[nonce]; nonce != "" && b.EnforceNonce && first != nil && s.options.Now().Sub(first.Sent) < s.options.NonceFor {
		wire := s.wire(first)
		wire["nonce"] = nonce
		return wire
	}
	m := &Message{Channel: c.ID, Author: BotUser, Nonce: nonce, Flags: b.Flags, Body: r.Call.Body}
	if b.Reference != nil {
		switch {
		case c.NoHistory:
			return noHistory
		case c.byID[b.Reference.MessageID] != nil:
			m.ReplyTo = b.Reference.MessageID
		case b.Reference.FailIfNotExists == nil || *b.Reference.FailIfNotExists:
			return invalidForm
		}
	}
	if b.Content != nil {
		m.Content = *b.Content
	}
	if refused := s.show(m, b.parts, len(r.Files)); refused != nil {
		return *refused
	}
	m.Files = s.store(c.ID, r.Files)
	wire := s.wire(s.posts(c, m))
	wire["nonce"] = nonce
	return wire
}

// posts adds a post of the bot.
func (s *Server) posts(c *channel, m *Message) *Message {
	s.posted++
	m.N = s.posted
	s.add(m)
	stored := c.byID[m.ID]
	if m.Nonce != "" {
		c.nonces[m.Nonce] = stored
	}
	if s.options.OnPost != nil {
		s.options.OnPost(*stored)
	}
	return stored
}

func (s *Server) editMessage(r request) any {
	return s.withMessage(r, func(c *channel, m *Message) any {
		if m.Author != BotUser {
			return notOurs
		}
		return s.edit(c, m, r)
	})
}

// edit changes a post of the bot.
func (s *Server) edit(c *channel, m *Message, r request) any {
	var b body
	r.decode(&b)
	changed := *m
	if b.Content != nil {
		changed.Content = *b.Content
	}
	if refused := s.show(&changed, b.parts, len(m.Files)+len(r.Files)); refused != nil {
		return *refused
	}
	m.Content, m.Embeds, m.Components = changed.Content, changed.Embeds, changed.Components
	m.Files = append(m.Files, s.store(c.ID, r.Files)...)
	m.Flags, m.Edits, m.Body = b.Flags, m.Edits+1, r.Call.Body
	m.Edited = s.options.Now()
	s.dispatch(c.Guild, "MESSAGE_UPDATE", s.live(m))
	if s.options.OnChange != nil {
		s.options.OnChange(*m)
	}
	return s.wire(m)
}

func (s *Server) removed(c *channel, m *Message) {
	s.dispatch(c.Guild, "MESSAGE_DELETE", c.place(map[string]any{"id": m.ID}))
	if s.options.OnChange != nil {
		s.options.OnChange(*m)
	}
}

// readMessages returns a page, newest first: the newest messages, those before an id, or the
// oldest ones after an id.
// https://docs.discord.com/developers/resources/message#get-channel-messages
func (s *Server) readMessages(r request) any {
	c, refused := s.visible(r)
	if refused != nil {
		return *refused
	}
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = 50
	}
	if limit < 1 || limit > 100 {
		return invalidForm
	}
	list := slices.Clone(c.messages)
	if c.NoHistory {
		list = nil
	}
	shown := s.options.Now().Add(-s.options.HistoryLag)
	list = slices.DeleteFunc(list, func(m *Message) bool { return m.Author != BotUser && m.Sent.After(shown) })
	slices.SortFunc(list, func(a, b *Message) int { return compareIDs(a.ID, b.ID) })
	if after := query.Get("after"); after != "" {
		list = slices.DeleteFunc(list, func(m *Message) bool { return compareIDs(m.ID, after) <= 0 })
		list = list[:min(len(list), limit)]
	} else if before := query.Get("before"); before != "" {
		list = slices.DeleteFunc(list, func(m *Message) bool { return compareIDs(m.ID, before) >= 0 })
	}
	list = list[max(0, len(list)-limit):]
	page := []any{}
	for _, m := range slices.Backward(list) {
		page = append(page, s.wire(m))
	}
	return page
}

func compareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// openThread opens a thread on a message. The thread has the message's id.
// https://docs.discord.com/developers/resources/channel#start-thread-from-message
func (s *Server) openThread(r request) any {
	return s.withMessage(r, func(c *channel, m *Message) any {
		if c.Type == Voice {
			return refusal{http.StatusBadRequest, 50024, "Cannot execute action on this channel type"}
		}
		if s.channels[m.ID] != nil {
			return refusal{http.StatusBadRequest, 160004, "A thread has already been created for this message"}
		}
		var b struct {
			Name string `json:"name"`
		}
		r.decode(&b)
		s.setChannel(Channel{ID: m.ID, Guild: c.Guild, Name: b.Name, Type: PublicThread, Parent: c.ID})
		return s.channels[m.ID].wire(0)
	})
}

// Has reports whether a channel shows a message.
func (s *Server) Has(channel, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[channel] != nil && s.channels[channel].byID[id] != nil
}
