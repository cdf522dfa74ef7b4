package operator

import (
	"context"
	"strings"
	"time"

	"parley/ingest/event"
)

// namesTime bounds the time that the platforms get for the names of one answer. A name that comes later is in the next answer.
const namesTime = 500 * time.Millisecond

// ChannelNames returns a function that names channels for a caller; it returns "" for one whose name is not known, and for one that the
// caller may not read. end must be called after the last name.
func (s *Service) ChannelNames(ctx context.Context, by Caller) (name func(workspace, channel string, room bool) string, end func()) {
	ctx, cancel := context.WithTimeout(ctx, namesTime)
	return func(workspace, channel string, room bool) string {
		if s.Live == nil || s.Live.Workspaces == nil || channel == "" || !by.Reads(room) {
			return ""
		}
		found, _ := s.Live.Workspaces.ChannelName(ctx, workspace, channel)
		return found
	}, cancel
}

// channelName is ChannelNames for one channel.
func (s *Service) channelName(ctx context.Context, by Caller, workspace, channel string, room bool) string {
	name, end := s.ChannelNames(ctx, by)
	defer end()
	return name(workspace, channel, room)
}

// Author returns the name of a message's author as the platform gave it with the message, or else the author's id.
func Author(senderID string, metadata []byte) string {
	read, _ := event.ReadMetadata(metadata) // a message without a name has an id
	if read.SenderDisplayName != "" {
		return read.SenderDisplayName
	}
	return strings.TrimPrefix(senderID, "agent:")
}
