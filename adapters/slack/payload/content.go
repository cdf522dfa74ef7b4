package payload

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// forwarded returns the messages that a user forwarded in the message, or whose permalinks the user pasted. Slack
// adds them to the attachments, beside unfurled links. A bot may have an ordinary user id; the
// directory knows it then. An author whom the directory cannot look up counts as a person.
func forwarded(ctx context.Context, raw json.RawMessage, self event.Self, directory adapters.Directory) []event.Quote {
	var quotes []event.Quote
	for _, a := range attachments(raw) {
		if !a.showsMessage() {
			continue
		}
		var v visible
		v.attachment(&a, 1)
		quote := event.Quote{Name: event.Text(a.AuthorName), Content: v.String(), Attached: present(files(v.files)), Own: SameID(a.AuthorID, self.UserID) || SameID(a.AuthorID, self.BotID)}
		if IsID(a.AuthorID) {
			quote.SenderID, quote.MentionToken = senderID(a.AuthorID), mentionToken(a.AuthorID)
			isBot := isBotID(a.AuthorID)
			if !isBot && !quote.Own {
				user, _ := directory.User(ctx, a.AuthorID)
				isBot = user.IsBot
			}
			quote.SenderType = event.Human
			if isBot {
				quote.SenderType = event.Bot
			}
		}
		if IsID(a.ChannelID) {
			quote.Channel = a.ChannelID
		}
		quote.Server = a.team()
		if quote.Channel != "" && IsTimestamp(a.TS) {
			quote.ExternalID = MessageID(a.ChannelID, a.TS)
		}
		quotes = append(quotes, quote)
	}
	return quotes
}

// permalink matches the address of a message.
var permalink = regexp.MustCompile(`https://[a-z0-9.-]+\.slack(-gov)?\.com/archives/[A-Z0-9]+/p[0-9]{16}`)

// awaitsLinked reports whether the text names a message by its permalink, and Slack has not added that message yet. Slack
// does so within two seconds, in a change of the message.
// https://docs.slack.dev/messaging/unfurling-links-in-messages
func (m *Message) awaitsLinked() bool {
	return permalink.MatchString(m.Text) && !slices.ContainsFunc(attachments(m.Attachments), wireAttachment.showsMessage)
}

// present returns the files that a person sees.
func present(all []event.Attachment) []event.Attachment {
	return slices.DeleteFunc(all, func(a event.Attachment) bool { return a.Gone })
}

// files returns files of a payload. One is gone if it is deleted or hidden by the team's plan, or if
// nothing is known of it. A file of another team is known to files.info alone.
// https://docs.slack.dev/reference/objects/file-object
func files(wire []File) []event.Attachment {
	var out []event.Attachment
	for i := range wire {
		out = append(out, wire[i].Attachment())
	}
	return out
}

// Attachment returns the file as an event describes it.
func (f *File) Attachment() event.Attachment {
	a := event.Attachment{
		ID:       event.Text(f.ID),
		Name:     event.Text(FirstOf(f.Name, f.Title)),
		MimeType: event.Text(f.Mimetype),
		Size:     f.Size.whole(),
	}
	isElsewhere := f.FileAccess == "check_file_info" || f.FileAccess == "access_denied"
	isNothing := FirstOf(f.Name, f.Title, f.Mimetype, f.Filetype, f.Subtype) == "" && !isElsewhere
	a.Gone = f.ID == "" || f.IsRemoved() || isNothing
	a.DurationMS, a.Words = f.DurationMS.whole(), event.Text(f.words())
	if f.Subtype == "slack_audio" {
		a.Type = event.TypeVoice
		a.Name, a.MimeType = voiceClip(a.Name, a.MimeType, event.Text(f.Filetype))
	}
	return a
}

// words returns the text of the file, if the payload has all of it: the transcription of a clip, the whole
// preview of a snippet, an e-mail, or the author's description of a picture.
func (f *File) words() string {
	said := f.Transcription.Preview
	switch {
	case f.IsRemoved():
		return ""
	case f.Transcription.Status == "complete" && !said.HasMore:
		return said.Content
	case f.Mode == "snippet" && !f.PreviewIsTruncated && f.LinesMore.whole() == 0:
		return f.Preview
	case f.Mode == "email":
		return f.mail()
	}
	return f.AltText
}

// mail returns the sender, the subject and the text of an e-mail.
func (f *File) mail() string {
	var head []string
	for _, from := range f.From {
		head = append(head, "From: "+FirstOf(from.Original, from.Address, from.Name))
	}
	if subject := FirstOf(string(f.Subject), f.Title); subject != "" {
		head = append(head, "Subject: "+subject)
	}
	return strings.TrimSpace(strings.Join(head, "\n") + "\n\n" + f.PlainText)
}

// IsRemoved reports whether Slack has deleted the file or hides it.
func (f *File) IsRemoved() bool {
	return slices.Contains([]string{"tombstone", "hidden_by_limit"}, f.Mode) || slices.Contains([]string{"file_not_found", "slack_file_not_found"}, f.FileAccess)
}

// isBeingProcessed reports whether Slack is still processing an uploaded file, or the words of a clip. Slack
// gives the type and the words when that is done, in a change of the message.
// https://docs.slack.dev/reference/methods/files.completeUploadExternal
// https://docs.slack.dev/reference/objects/file-object
func (f File) isBeingProcessed() bool {
	return f.Transcription.Status == "processing" || f.Mode == "hosted" && f.FileAccess != "check_file_info" && f.Mimetype == "" && f.Filetype == ""
}

// voiceClip returns the name and type of a voice clip. Slack gives some clips a video
// type, and may omit the name of a clip that was just recorded.
func voiceClip(name, mimeType, filetype string) (string, string) {
	if rest, ok := strings.CutPrefix(mimeType, "video/"); ok {
		mimeType = "audio/" + rest
	}
	if name == "" {
		name = "audio_message"
		if IsID(filetype) {
			name += "." + filetype
		}
	}
	return name, mimeType
}

// interactionMessage returns an interaction as a message of its user. If Slack gives no
// time, for example for a command, the time is the arrival.
func (p *Payload) interactionMessage(ctx context.Context, envelope event.Envelope, directory adapters.Directory) *event.Message {
	d, channel, self := p.interaction, p.channelOf(directory), p.self(directory)
	message := &event.Message{
		ExternalID: p.messageID(),
		Thread:     p.thread(envelope.Workspace, directory),
		Channel:    channel,
		Content:    d.text,
		Metadata:   (&Message{User: d.user}).metadata(ctx, directory),
		SentAt:     envelope.ReceivedAt,
		Addressed:  event.AddressedCommand,
		Command:    d.word,
		Pressed:    d.pressed,
		Own:        SameID(d.user, self.UserID),
	}
	if p.kind == event.KindAction {
		message.Addressed = event.AddressedAction
	}
	if IsTimestamp(d.ts) {
		message.SentAt = SentAt(d.ts)
	}
	message.Metadata.ChannelExternalID, message.Metadata.Extra = channel.ID, d.extra
	if d.target == nil {
		return message
	}
	message.Quoted = quote(ctx, p.channel, d.target, self, directory)
	if root := d.target.ThreadTS; root != "" && root != d.target.TS && channel.Type != event.ChannelRoom {
		message.OpenedOn = MessageID(p.channel, root)
	}
	return message
}

// quote returns the message with which the user interacted; nil if the payload does not
// contain it.
func quote(ctx context.Context, channel string, m *Message, self event.Self, directory adapters.Directory) *event.Quote {
	if m.author() == "" {
		return nil
	}
	author := m.metadata(ctx, directory)
	return &event.Quote{
		ExternalID: MessageID(channel, m.TS), Name: author.SenderDisplayName, MentionToken: author.MentionToken, SenderID: author.SenderID, SenderType: author.SenderType,
		AltSenderID: m.botUser(), Content: m.content(), Files: len(present(files(m.Files))), Own: m.IsOwn(self),
	}
}
