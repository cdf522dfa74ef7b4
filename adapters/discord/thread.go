package discord

import "parley/ingest/event"

// ThreadKey returns the key of the conversation in a channel, "discord:<workspace>:<channel
// id>". A Discord thread, a forum post and a direct message are channels too.
func ThreadKey(workspace, channelID string) event.ThreadKey {
	return event.ThreadKey(string(event.Discord) + ":" + workspace + ":" + channelID)
}

// Types of channels that guild_id does not imply.
// https://docs.discord.com/developers/resources/channel#channel-object-channel-types
const (
	channelDM                 = 1
	channelGroupDM            = 3
	channelAnnouncementThread = 10 // 11 is a public thread
	channelPrivateThread      = 12
)

// messageChannel returns the channel of a message with an author. Such a payload always names
// the guild unless the message is direct. It seldom contains the channel's type.
func messageChannel(id, guild string, channelType int64) event.Channel {
	switch {
	case channelType == channelGroupDM:
		return event.Channel{ID: id, Type: event.ChannelGroup}
	case channelType == channelDM, channelType == 0 && guild == "":
		return event.Channel{ID: id, Type: event.ChannelDirect}
	}
	return event.Channel{ID: id, Type: event.ChannelRoom}
}

// targetChannel returns the channel of an event about a message. Its type is unknown without
// a guild: the channel is probably a direct message, but no caller needs that guess.
func targetChannel(id, guild string) event.Channel {
	if guild == "" {
		return event.Channel{ID: id}
	}
	return event.Channel{ID: id, Type: event.ChannelRoom}
}

// isThread reports whether a channel's type is that of a thread or a forum post.
func isThread(channelType int64) bool {
	return channelType >= channelAnnouncementThread && channelType <= channelPrivateThread
}
