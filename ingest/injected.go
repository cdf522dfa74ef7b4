package ingest

import (
	"context"
	"errors"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// injected is the body of a message that a program injects.
type injected struct{ event.Injected }

// keys implements ours.
func (m *injected) keys() (keys event.Keys, err error) {
	if _, ok := event.InjectedBy(m.ID); !ok || m.Thread == "" {
		return keys, errors.New("an injected message needs an id of its own and a thread")
	}
	if _, err := event.ParseMetadata([]byte(m.Metadata)); err != nil {
		return keys, err
	}
	return event.Keys{Kind: event.KindMessage, Dedupe: m.ID, Thread: m.Thread, Channel: m.channel(), MessageID: m.ID}, nil
}

func (m *injected) channel() event.Channel {
	c := event.Channel{ID: m.Channel, Parent: m.Parent}
	if m.Direct {
		c.Type = event.ChannelDirect
	}
	return c
}

// event implements ours.
func (m *injected) event(envelope event.Envelope) event.Event {
	metadata, _ := event.ParseMetadata([]byte(m.Metadata)) // keys has checked it
	message := &event.Message{
		ExternalID: m.ID, ClientMessageID: m.ClientMessageID, Thread: m.Thread, Channel: m.channel(), Content: m.Content, SentAt: envelope.ReceivedAt,
		Metadata: metadata, Passive: m.Passive, ReplyTo: m.ReplyTo, OpenedOn: m.OpenedOn, FollowUp: m.FollowUp && !m.Mentioned, Injected: &m.Injected,
	}
	if m.Alone {
		message.RunID = m.ID[strings.LastIndexByte(m.ID, ':')+1:]
	}
	if m.Mentioned {
		message.Addressed = event.AddressedMention
	}
	for _, f := range m.Files {
		file := f.Attachment
		file.Copy = new(f.At)
		message.Attachments = append(message.Attachments, file)
	}
	if m.Passive && metadata.Passive != nil && !*metadata.Passive { // the two contradict each other
		message.Metadata.Passive = new(true)
		message.Metadata.Edited()
	}
	return event.Event{Kind: event.KindMessage, Message: message}
}

// takeInjected prepares the gate for a message that a program injects. The policy judges it as it judges a person's of the
// platform; only its metadata stays as it was given.
func (in *Ingest) takeInjected(ctx context.Context, w *workspace, g *gate, m *event.Message) error {
	g.injected = true
	if agent, ok := askedAgent(m); ok {
		g.notForUs = g.HasAgent == nil || !g.HasAgent(agent)
		if !g.notForUs {
			g.Agent = agent
		}
	}
	if m.Channel.Type == event.ChannelUnknown {
		d := in.directory(ctx, w)
		m.Channel.Type = d.ChannelType(m.Channel.ID)
		return d.err
	}
	return nil
}

// asGiven reports whether the metadata of the message is stored as it was given, without run hints.
func (g gate) asGiven() bool { return g.KeepMetadata || g.injected }

// isAnnounced reports whether people are shown a message that a program injects.
func isAnnounced(m *event.Message) bool {
	return m != nil && m.Injected != nil && m.Injected.Announce
}

// isTold reports whether the sender of a message is told that it gets no answer. A bot may answer that, and a program has
// the result of its call.
func isTold(m *event.Message) bool { return m.Metadata.SenderType != event.Bot && m.Injected == nil }

// originOf returns the origin of an event's message.
func originOf(envelope event.Envelope, asGiven bool) messages.Origin {
	switch {
	case asGiven: // from a caller of our own API
		return messages.API
	case envelope.Transport == event.Backfilled:
		return messages.Late
	}
	return messages.Live
}
