package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/work"
)

// proxyAge is the greatest age of a message at the time when a proxy bot posts its copy.
const proxyAge = time.Minute

// unproxy makes the copies that proxy bots have posted for people messages of people: the message
// and those inside it. It reports whether the message is such a copy.
func (g gate) unproxy(m *event.Message) bool {
	isCopy := func(application string) bool {
		return application != "" && slices.Contains(g.Policy.Proxies, application)
	}
	quotes := m.Forwarded
	for i := range quotes {
		if isCopy(quotes[i].AltSenderID) {
			quotes[i].SenderType = event.Human
		}
	}
	if m.Quoted != nil && isCopy(m.Quoted.AltSenderID) {
		m.Quoted.SenderType = event.Human
	}
	if m.Metadata.SenderType != event.Bot || !isCopy(m.AltSenderID) {
		return false
	}
	m.Metadata.SenderType = event.Human
	m.Metadata.Extra = append(m.Metadata.Extra, event.Extra{Key: event.KeyProxiedBy, Value: json.RawMessage(strconv.Quote(m.AltSenderID))})
	m.Metadata.Edited()
	return true
}

// throughApp makes a message of the person with whose token an app of the policy has written it. It stays the app's if the platform does
// not say that the user is a person.
func (in *Ingest) throughApp(ctx context.Context, w *workspace, g gate, m *event.Message) {
	t := m.Through
	if t == nil || m.Metadata.SenderType != event.Bot || !slices.Contains(g.Policy.AppsOfPeople, t.App) {
		return
	}
	user, known := in.directory(ctx, w).User(ctx, t.User)
	if !known || user.IsBot {
		return
	}
	m.AltSenderID = ""
	m.Metadata.SenderType, m.Metadata.SenderID, m.Metadata.SenderDisplayName, m.Metadata.MentionToken = event.Human, g.senders+":"+t.User, event.Text(user.DisplayName), t.Mention
	m.Metadata.Extra = append(m.Metadata.Extra, event.Extra{Key: event.KeyProxiedBy, Value: json.RawMessage(strconv.Quote(t.App))})
	m.Metadata.Edited()
}

// nameAuthor gives the copy that a proxy bot has posted to the person who wrote the original. The copy
// keeps the name that people see. Without a known original, its author has the id of the copy's, which
// is on no list of people.
func (in *Ingest) nameAuthor(ctx context.Context, c *work.Claim, m *event.Message) error {
	text := strings.TrimSpace(m.Content)
	raw, err := in.Journal.Messages.Author(ctx, c.Thread, m.ExternalID, func(original *messages.Message) bool {
		if text == "" || !strings.Contains(original.Content, text) || m.SentAt.Sub(original.SentAt).Abs() > proxyAge {
			return false
		}
		metadata, err := event.ReadMetadata(original.Metadata)
		return err == nil && !slices.ContainsFunc(metadata.Extra, func(e event.Extra) bool { return e.Key == event.KeyProxiedBy })
	})
	if err != nil || raw == nil {
		return err
	}
	author, err := event.ReadMetadata(raw)
	if err != nil {
		return fmt.Errorf("read the author of a copied message: %w", err)
	}
	m.Metadata.SenderID, m.Metadata.MentionToken = author.SenderID, author.MentionToken
	m.Metadata.Edited()
	return nil
}
