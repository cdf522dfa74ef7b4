package call

import (
	"regexp"
	"slices"

	"github.com/bwmarrin/discordgo"
)

// Message is the body of a call that posts or edits. discordgo's has no nonce.
// https://docs.discord.com/developers/resources/message#create-message
type Message struct {
	Content         string                           `json:"content"`
	Flags           discordgo.MessageFlags           `json:"flags"`
	AllowedMentions discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Nonce           string                           `json:"nonce,omitempty"`
	EnforceNonce    bool                             `json:"enforce_nonce,omitempty"`
	Reference       *discordgo.MessageReference      `json:"message_reference,omitempty"`
	Components      []discordgo.MessageComponent     `json:"components,omitempty"`
	Embeds          []*discordgo.MessageEmbed        `json:"embeds,omitempty"`
	Plain           string                           `json:"-"` // the content if Discord drops the embeds
}

// NewMessage returns the part of a body that posts and edits share. It pings the users whose tokens
// are in the text: Format has disabled all tokens but those of known users. Links have no previews.
func NewMessage(text string) Message {
	mentions := discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
	for _, match := range mentionToken.FindAllStringSubmatch(text, -1) {
		if len(mentions.Users) < maxAllowed && !slices.Contains(mentions.Users, match[1]) {
			mentions.Users = append(mentions.Users, match[1])
		}
	}
	return Message{Content: text, Flags: discordgo.MessageFlagsSuppressEmbeds, AllowedMentions: mentions}
}

// mentionToken matches the token of a user.
var mentionToken = regexp.MustCompile(`<@!?([0-9]{1,20})>`)

// maxAllowed is the greatest number of users in allowed_mentions.
// https://docs.discord.com/developers/resources/message#allowed-mentions-object
const maxAllowed = 100

// MessagePath is the path of the calls about a message.
func MessagePath(channel, id string) string { return "/channels/" + channel + "/messages/" + id }
