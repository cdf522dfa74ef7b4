package discord

import (
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
)

// ThreadKey names the conversation in a channel, "discord:<workspace>:<channel id>".
// To Discord a thread, a forum post and a direct message are channels too.
func ThreadKey(workspace, channelID string) event.ThreadKey {
	return event.ThreadKey(string(event.Discord) + ":" + workspace + ":" + channelID)
}

// Types of channels that tell more than guild_id does.
// https://docs.discord.com/developers/resources/channel#channel-object-channel-types
const (
	channelDM                 = 1
	channelGroupDM            = 3
	channelAnnouncementThread = 10 // and 11, a public thread
	channelPrivateThread      = 12
)

// channelOf is the place of a message. Its payload always tells the guild,
// which direct messages have none of, and seldom the channel's type.
func channelOf(id, guild string, channelType int64) event.Channel {
	switch {
	case channelType == channelGroupDM:
		return event.Channel{ID: id, Type: event.ChannelGroup}
	case channelType == channelDM, channelType == 0 && guild == "":
		return event.Channel{ID: id, Type: event.ChannelDirect}
	}
	return event.Channel{ID: id, Type: event.ChannelRoom}
}

// placeOf is the place of what happened to a message. Without a guild it is
// likely a direct message, but nothing hangs on guessing that.
func placeOf(id, guild string) event.Channel {
	if guild == "" {
		return event.Channel{ID: id}
	}
	return event.Channel{ID: id, Type: event.ChannelRoom}
}

// isThread says whether a channel's type is that of a thread or a forum post.
func isThread(channelType int64) bool {
	return channelType >= channelAnnouncementThread && channelType <= channelPrivateThread
}

// isSnowflake says whether s can be one of Discord's ids: 64 bits in decimal.
func isSnowflake(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
}

// epoch is Discord's first millisecond, in those since 1970.
const epoch = 1_420_070_400_000

// snowflakeTime is when Discord made an id, zero where it is none.
// https://docs.discord.com/developers/reference#snowflakes
func snowflakeTime(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + epoch).UTC()
}
