package payload

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// Message contains the fields of the webhook's message that the adapter uses.
type Message struct {
	Row     int64 // the ROWID in Messages' database; 0 if the payload has none
	Created time.Time
	Edited  time.Time
	Chat    *Chat // nil in updates, which name no chat
	Failure int64 // the "error" of sending; 0 if there is none

	tempGUID    string
	text        string // without the placeholders of attachments
	subject     string
	fromMe      bool
	retracted   time.Time
	replyTo     string
	handle      handle
	attachments []event.Attachment
	mentioned   []string // addresses
	awaitsFiles bool     // files that belong to it are missing
	isLink      bool     // a link alone, which Messages takes out of a longer text
}

// handle is the author of a message as the payload names him.
type handle struct {
	address string
	service string // such as iMessage or SMS; empty if the payload does not tell
	Contact        // only names
}

func readMessage(data jsonobject.Fields) Message {
	more := data.Optional()
	m := Message{
		Row:         more.Number("originalROWID"),
		tempGUID:    id(more, "tempGuid"),
		text:        readWords(data),
		subject:     Typed(more.Text("subject")),
		fromMe:      data.Flag("isFromMe"),
		Created:     date(data, "dateCreated"),
		Edited:      date(data, "dateEdited"),
		retracted:   date(data, "dateRetracted"),
		replyTo:     id(data, "threadOriginatorGuid"),
		attachments: readAttachments(data),
		mentioned:   readMentioned(data),
		Failure:     more.Number("error"),
	}
	balloon := more.Text("balloonBundleId")
	m.awaitsFiles = balloon == "" && m.Edited.IsZero() && countFiles(data) > len(data.Children("attachments"))
	m.isLink = balloon == linkBalloon && !strings.ContainsAny(m.text, " \n")
	if h, ok := data.Child("handle"); ok {
		names := h.Optional()
		m.handle = handle{id(h, "address"), names.Text("service"), Contact{DisplayName: names.Text("displayName"), FirstName: names.Text("firstName"), LastName: names.Text("lastName")}}
	}
	if chats := data.Children("chats"); len(chats) > 0 {
		m.Chat = readChat(chats[0])
	}
	return m
}

func readChat(o jsonobject.Fields) *Chat {
	more := o.Optional()
	c := Chat{GUID: requiredID(o, "guid"), name: more.Text("displayName"), style: more.Number("style")}
	if c.GUID != "" && ChatName(c.GUID) == "" {
		o.Fault("guid", "must name a chat after its last semicolon")
	}
	return &c
}

// readWords returns the typed words of a message.
func readWords(data jsonobject.Fields) string {
	text := Typed(readText(data))
	if isPoll(data) {
		return pollWords(data.Optional(), text)
	}
	return text
}

// readText returns the text. The server may leave it out and send attributedBody instead, a
// list with the text of each part.
func readText(data jsonobject.Fields) string {
	var parts []struct {
		Text string `json:"string"`
	}
	if data.Has("text") || json.Unmarshal(data.Raw("attributedBody"), &parts) != nil {
		return data.Text("text")
	}
	var text strings.Builder
	for _, part := range parts {
		text.WriteString(event.Text(part.Text))
	}
	return text.String()
}

// linkBalloon is the kind of a message that is shown as the preview of a link.
const linkBalloon = "com.apple.messages.URLBalloonProvider"

// Attributes of parts of a text, by Messages' own names.
const (
	attributeFile       = "__kIMFileTransferGUIDAttributeName" // the guid of the file in this place
	attributeSpoken     = "IMAudioTranscription"               // Apple's transcription of that file, a voice note
	attributeMentioning = "__kIMMentionConfirmedMention"       // the address of the person whom this part names
)

// eachAttributes calls do for the attributes of each part of the text.
func eachAttributes(data jsonobject.Fields, do func(attributes jsonobject.Fields)) {
	for _, body := range data.Optional().Children("attributedBody") {
		for _, run := range body.Children("runs") {
			if attributes, ok := run.Child("attributes"); ok {
				do(attributes)
			}
		}
	}
}

// countFiles returns the number of files that belong to a message by its text or by the attributes of
// its text.
func countFiles(data jsonobject.Fields) int {
	files := 0
	eachAttributes(data, func(attributes jsonobject.Fields) {
		if attributes.Has(attributeFile) {
			files++
		}
	})
	return max(files, strings.Count(data.Optional().Text("text"), placeholder))
}

// readSpoken returns the transcriptions of the voice notes, by the guids of the files.
func readSpoken(data jsonobject.Fields) map[string]string {
	spoken := map[string]string{}
	eachAttributes(data, func(attributes jsonobject.Fields) {
		if words := attributes.Text(attributeSpoken); words != "" {
			spoken[attributes.Text(attributeFile)] = words
		}
	})
	return spoken
}

// readMentioned returns the addresses of the people whom the author has chosen from the list of the chat. The text
// shows the name in the author's own address book.
func readMentioned(data jsonobject.Fields) (addresses []string) {
	eachAttributes(data, func(attributes jsonobject.Fields) {
		if address := attributes.Text(attributeMentioning); address != "" {
			addresses = append(addresses, address)
		}
	})
	return addresses
}

// placeholder marks the position of an attachment in a text.
const placeholder = "\uFFFC"

// appPlaceholder is the text of an app's message, such as a game or a payment.
const appPlaceholder = "\uFFFD"

// Typed returns the typed text without placeholders.
func Typed(text string) string {
	text = strings.ReplaceAll(text, placeholder, "")
	if strings.TrimSpace(text) == appPlaceholder {
		return ""
	}
	return text
}

// readAttachments returns the files that a person can see.
func readAttachments(data jsonobject.Fields) []event.Attachment {
	var attachments []event.Attachment
	isVoice, spoken := data.Optional().Flag("isAudioMessage"), readSpoken(data)
	for _, o := range data.Children("attachments") {
		more := o.Optional()
		name := more.Text("transferName")
		if hidden(more, name) {
			continue
		}
		file := event.Attachment{
			ID:       requiredID(o, "guid"),
			Name:     name,
			MimeType: more.Text("mimeType"),
			Size:     max(more.Number("totalBytes"), 0),
		}
		if isVoice || more.Text("uti") == voiceNote {
			file.Type = event.TypeVoice
		}
		file.DurationMS, file.Words = duration(more), spoken[file.ID]
		attachments = append(attachments, file)
	}
	return attachments
}

// voiceNote is the type of a recording that Messages made itself. Webhooks have no isAudioMessage.
const voiceNote = "com.apple.coreaudio-format"

// duration returns the length of a recording in milliseconds; 0 if the server has not read it.
func duration(file jsonobject.Fields) int64 {
	metadata, _ := file.Child("metadata")
	seconds, err := strconv.ParseFloat(strings.Trim(string(metadata.Raw("duration")), `"`), 64)
	if err != nil || !(seconds > 0 && seconds < math.MaxInt32) {
		return 0
	}
	return int64(math.Round(seconds * 1000))
}

// hidden reports whether an attachment is data of Messages itself, such as a link's preview,
// and not a file that a person sent.
func hidden(o jsonobject.Fields, name string) bool {
	return o.Flag("hideAttachment") ||
		strings.HasPrefix(o.Text("uti"), "com.apple.messages.") ||
		strings.HasSuffix(name, ".pluginPayloadAttachment")
}

// unsent reports whether the author took the message back. If the author unsent it part by
// part, or edited it to nothing, it has an edit date and neither text nor attachments.
func (m Message) unsent() bool { return !m.retracted.IsZero() || m.empty() && !m.Edited.IsZero() }

// empty reports whether the message has no content.
func (m Message) empty() bool { return m.text == "" && m.subject == "" && len(m.attachments) == 0 }

// looksLike reports whether the message has the post's text or file.
func (m Message) looksLike(post adapters.Post) bool {
	if post.File == nil {
		return strings.TrimSpace(m.text) == strings.TrimSpace(post.Text)
	}
	return slices.ContainsFunc(m.attachments, func(f event.Attachment) bool { return f.Name == post.File.Name })
}

// dated is the length of the time at the beginning of a revision, in bytes.
const dated = 15

// revision returns the time of the last edit in milliseconds, and a hash of every field that can
// change. Receipts are not part of it: the delivery or the reading of a message does not change it.
func (m Message) revision() string {
	files := make([]string, len(m.attachments))
	for i, a := range m.attachments {
		files[i] = a.ID
		if a.Words != "" { // which come some seconds after the file
			files[i] += " " + a.Words
		}
	}
	slices.Sort(files)
	var edited int64
	if !m.Edited.IsZero() {
		edited = m.Edited.UnixMilli()
	}
	state := fmt.Appendf(nil, "%q %q %d %q %d", m.text, m.subject, m.retracted.UnixMilli(), files, m.Failure)
	return fmt.Sprintf("%0*d:%s", dated, edited, adapters.Digest(state)[:32])
}

// endOfTime is the first millisecond that RFC 3339 cannot express: the year 10000.
const endOfTime = 253_402_300_800_000

// date reads a time in milliseconds since 1970. 0 and null are the zero time.
func date(data jsonobject.Fields, key string) time.Time {
	ms := data.Number(key)
	if ms < 0 || ms >= endOfTime {
		data.Fault(key, "must be milliseconds since 1970")
		return time.Time{}
	}
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
