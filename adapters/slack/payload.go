package slack

import "encoding/json"

// wireOuter is what may stand around an event: a Socket Mode frame, or the
// callback that it carries and that the Events API posts as it is. The two share
// no field that is read but the type.
// https://docs.slack.dev/apis/events-api/
type wireOuter struct {
	Type string `json:"type"`

	Payload json.RawMessage `json:"payload"`

	TeamID         string              `json:"team_id"`
	EnterpriseID   string              `json:"enterprise_id"`
	ContextTeamID  string              `json:"context_team_id"` // through which we get the event
	APIAppID       string              `json:"api_app_id"`
	EventID        string              `json:"event_id"`
	AuthedUsers    []string            `json:"authed_users"`
	Authorizations []wireAuthorization `json:"authorizations"`
	Event          json.RawMessage     `json:"event"`

	Command string `json:"command"` // a slash command's, which has no type
}

// wireAuthorization is one installation that may see the event.
type wireAuthorization struct {
	TeamID              string `json:"team_id"`
	EnterpriseID        string `json:"enterprise_id"`
	UserID              string `json:"user_id"`
	IsBot               bool   `json:"is_bot"`
	IsEnterpriseInstall bool   `json:"is_enterprise_install"`
}

// wireHead is what tells one event from another.
type wireHead struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
}

// wireMessage is a message or app_mention event, and the message inside a
// message_changed. What may hold anything, and matters to some messages only,
// stays raw.
// https://docs.slack.dev/reference/events/message
type wireMessage struct {
	Subtype      string           `json:"subtype"`
	Channel      string           `json:"channel"`
	ChannelType  string           `json:"channel_type"`
	User         string           `json:"user"`
	BotID        string           `json:"bot_id"`
	Username     string           `json:"username"`
	BotProfile   *wireBotProfile  `json:"bot_profile"`
	UserProfile  *wireUserProfile `json:"user_profile"`
	Text         string           `json:"text"`
	TS           string           `json:"ts"`
	ThreadTS     string           `json:"thread_ts"`
	ParentUserID string           `json:"parent_user_id"`
	ClientMsgID  string           `json:"client_msg_id"`
	Edited       *wireEdited      `json:"edited"`
	Files        []wireFile       `json:"files"`
	Attachments  json.RawMessage  `json:"attachments"`
	Blocks       json.RawMessage  `json:"blocks"`
	Metadata     json.RawMessage  `json:"metadata"`
}

// wireChange is a message event that is about another message.
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

// wireUserProfile comes with the messages of a shared channel's other side.
type wireUserProfile struct {
	DisplayName string `json:"display_name"`
	RealName    string `json:"real_name"`
}

type wireEdited struct {
	TS string `json:"ts"`
}

type wireFile struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Mimetype string `json:"mimetype"`
	Size     int64  `json:"size"`
	// Mode is "tombstone" once the file is deleted, "hidden_by_limit" where the
	// team's plan hides it; such a file has an id and little else.
	Mode string `json:"mode"`
	// FileAccess is "check_file_info" for a file of another team's in a shared
	// channel, of which files.info tells more; others say why there is none.
	FileAccess string `json:"file_access"`
	Filetype   string `json:"filetype"`
	Subtype    string `json:"subtype"` // slack_audio for a voice clip
}

// wireAttachment is an unfurled link, a program's legacy attachment, or a
// message passed on; files are not among these.
type wireAttachment struct {
	Pretext  string `json:"pretext"`
	Title    string `json:"title"`
	Text     string `json:"text"`
	Fallback string `json:"fallback"`

	IsShare    bool            `json:"is_share"`
	AuthorID   string          `json:"author_id"`
	AuthorName string          `json:"author_name"`
	ChannelID  string          `json:"channel_id"`
	TS         string          `json:"ts"`
	Files      json.RawMessage `json:"files"`
}

// wireReaction is a reaction_added or reaction_removed event.
// https://docs.slack.dev/reference/events/reaction_added
type wireReaction struct {
	User     string   `json:"user"`
	Reaction string   `json:"reaction"`
	EventTS  string   `json:"event_ts"`
	Item     wireItem `json:"item"`
}

// wireItem is what a reaction is put on: a message, or formerly a file.
type wireItem struct {
	Type    string `json:"type"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}
