package payload

import (
	"fmt"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/ingest/event"
)

// ThreadKey returns the key of the conversation in a channel, "discord:<workspace>:<channel
// id>". A Discord thread, a forum post and a direct message are channels too.
func ThreadKey(workspace, channelID string) event.ThreadKey {
	return event.ThreadKey(string(event.Discord) + ":" + workspace + ":" + channelID)
}

// AddressOf returns a thread's channel. Its Place is the id of the answered message.
func AddressOf(workspace string, thread event.ThreadKey, answered string) (adapters.Address, error) {
	channel, ok := strings.CutPrefix(string(thread), string(ThreadKey(workspace, "")))
	if !ok || !IsID(channel) {
		return adapters.Address{}, fmt.Errorf("%q is not a thread of workspace %s on Discord", thread, workspace)
	}
	return adapters.Address{Channel: channel, Place: answered}, nil
}

// messageChannel returns the channel of a message with an author. Such a payload always names
// the guild unless the message is direct. It seldom contains the channel's type.
func messageChannel(id, guild string, channelType discordgo.ChannelType) event.Channel {
	switch {
	case channelType == discordgo.ChannelTypeGroupDM:
		return event.Channel{ID: id, Type: event.ChannelGroup}
	case channelType == discordgo.ChannelTypeDM, channelType == 0 && guild == "":
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
