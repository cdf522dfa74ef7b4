package payload

import "encoding/json"

// wireOuter is the object around an event. It is a Socket Mode frame, or the callback
// that such a frame carries and that the Events API posts directly. Of the fields that
// Parley reads, the two share only the type.
// https://docs.slack.dev/apis/events-api/
type wireOuter struct {
	Type string `json:"type"`

	Payload json.RawMessage `json:"payload"`

	TeamID         string              `json:"team_id"`
	EnterpriseID   string              `json:"enterprise_id"`
	ContextTeamID  string              `json:"context_team_id"` // the team through which the app gets the event
	APIAppID       string              `json:"api_app_id"`
	EventID        string              `json:"event_id"`
	AuthedUsers    []string            `json:"authed_users"`
	Authorizations []wireAuthorization `json:"authorizations"`
	Event          json.RawMessage     `json:"event"`

	Command string `json:"command"` // of a slash command, which has no type
}

// wireAuthorization is one installation that may see the event.
type wireAuthorization struct {
	TeamID              string `json:"team_id"`
	EnterpriseID        string `json:"enterprise_id"`
	UserID              string `json:"user_id"`
	IsBot               *bool  `json:"is_bot"` // nil: the bot's, because a person's says so
	IsEnterpriseInstall bool   `json:"is_enterprise_install"`
}

// wireHead has the fields that determine the kind of an event.
type wireHead struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
}

// Message is a message or app_mention event, or the message inside a
// message_changed event. Fields that may have any form, and that matter only to some
// messages, stay raw.
// https://docs.slack.dev/reference/events/message
type Message struct {
	Subtype      string           `json:"subtype"`
	Channel      string           `json:"channel"`
	ChannelType  string           `json:"channel_type"`
	User         string           `json:"user"`
	BotID        string           `json:"bot_id"`
	AppID        string           `json:"app_id"`
	Username     string           `json:"username"`
	UserTeam     string           `json:"user_team"`
	SourceTeam   string           `json:"source_team"`
	Team         string           `json:"team"`
	BotProfile   *wireBotProfile  `json:"bot_profile"`
	UserProfile  *wireUserProfile `json:"user_profile"`
	Text         string           `json:"text"`
	TS           string           `json:"ts"`
	ThreadTS     string           `json:"thread_ts"`
	ParentUserID string           `json:"parent_user_id"`
	Root         wireRoot         `json:"root"`
	ClientMsgID  string           `json:"client_msg_id"`
	Edited       *Edited          `json:"edited"`
	Files        []File           `json:"files"`
	Attachments  json.RawMessage  `json:"attachments"`
	Blocks       json.RawMessage  `json:"blocks"`
	Metadata     json.RawMessage  `json:"metadata"`

	visible *visible // read at most once
}

// wireRoot is the root of a thread, in a reply that was also sent to the channel. Such a reply
// has no parent_user_id.
type wireRoot struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// wireChange is a message event that changes another message.
type wireChange struct {
	Channel         string          `json:"channel"`
	ChannelType     string          `json:"channel_type"`
	TS              string          `json:"ts"`
	DeletedTS       string          `json:"deleted_ts"`
	Message         json.RawMessage `json:"message"`
	PreviousMessage json.RawMessage `json:"previous_message"`
}

type wireBotProfile struct {
	Name  string `json:"name"`
	AppID string `json:"app_id"`
}

// wireUserProfile is part of messages by the other team of a shared channel.
type wireUserProfile struct {
	DisplayName string `json:"display_name"`
	RealName    string `json:"real_name"`
}

// Edited is the last edit of a message. TS is its time.
type Edited struct {
	TS string `json:"ts"`
}

// File is a file of a message.
// https://docs.slack.dev/reference/objects/file-object
type File struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Mimetype string `json:"mimetype"`
	Size     number `json:"size"`
	// Mode is "tombstone" if the file is deleted, and "hidden_by_limit" if the team's plan
	// hides it. Such a file has an id and few other fields.
	Mode string `json:"mode"`
	// FileAccess is "check_file_info" for another team's file in a shared channel;
	// files.info describes such a file. Other values give the reason why there is no file.
	FileAccess string `json:"file_access"`
	Filetype   string `json:"filetype"`
	Subtype    string `json:"subtype"`     // slack_audio for a voice clip
	DurationMS number `json:"duration_ms"` // of a recording
	// Preview is the beginning of a snippet, or all of it.
	Preview            string `json:"preview"`
	PreviewIsTruncated bool   `json:"preview_is_truncated"`
	LinesMore          number `json:"lines_more"` // that the preview does not have
	AltText            string `json:"alt_txt"`    // the author's description of a picture
	// Subject, From and PlainText are those of an e-mail that was sent into the channel, whose Mode is "email".
	Subject   shownText     `json:"subject"`
	From      []wireAddress `json:"from"`
	PlainText string        `json:"plain_text"`
	// Transcription has the spoken words of a clip.
	Transcription wireTranscription `json:"transcription"`
}

// wireAddress is an address of an e-mail.
type wireAddress struct {
	Address  string `json:"address"`
	Name     string `json:"name"`
	Original string `json:"original"` // such as "Ann <ann@example.org>"
}

// wireAttachment is an unfurled link, an app's legacy attachment, or a forwarded
// message. It is never a file.
type wireAttachment struct {
	Pretext  string          `json:"pretext"`
	Title    string          `json:"title"`
	Text     string          `json:"text"`
	Fields   []wireField     `json:"fields"`
	Blocks   json.RawMessage `json:"blocks"`
	Fallback string          `json:"fallback"`

	// FromURL is the link of an unfurl, OriginalURL the one that the author typed.
	FromURL         string `json:"from_url"`
	OriginalURL     string `json:"original_url"`
	IsMessageUnfurl bool   `json:"is_msg_unfurl"`
	IsAppUnfurl     bool   `json:"is_app_unfurl"`

	IsShare       bool            `json:"is_share"`
	AuthorID      string          `json:"author_id"`
	AuthorName    string          `json:"author_name"`
	ChannelID     string          `json:"channel_id"`
	TS            string          `json:"ts"`
	Files         []File          `json:"files"`
	MessageBlocks json.RawMessage `json:"message_blocks"` // the blocks of a forwarded message
	Attachments   json.RawMessage `json:"attachments"`    // of a forwarded message
}

// team returns the team of a forwarded message; empty if the payload does not name it.
func (a *wireAttachment) team() string {
	var blocks []struct {
		Team string `json:"team"`
	}
	if json.Unmarshal(a.MessageBlocks, &blocks) != nil || len(blocks) == 0 || !IsTeam(blocks[0].Team) {
		return ""
	}
	return blocks[0].Team
}

// wireField is a row of an attachment's table.
type wireField struct {
	Title shownText `json:"title"`
	Value shownText `json:"value"`
}

// wireReaction is a reaction_added or reaction_removed event.
// https://docs.slack.dev/reference/events/reaction_added
type wireReaction struct {
	User     string   `json:"user"`
	Reaction string   `json:"reaction"`
	EventTS  string   `json:"event_ts"`
	Item     wireItem `json:"item"`
}

// wireItem is the item of a reaction: a message or, in older events, a file.
type wireItem struct {
	Type    string `json:"type"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// wireTranscription is Slack's transcription of a clip.
// https://docs.slack.dev/reference/objects/file-object
type wireTranscription struct {
	Status  string `json:"status"`
	Preview struct {
		Content string `json:"content"`
		HasMore bool   `json:"has_more"`
	} `json:"preview"`
}
