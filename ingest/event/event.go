// Package event defines inbound data: envelope, event, the contract's message and
// metadata, thread and attachment.
//
// An envelope is a platform's raw payload. Its Keys are read before the durable accept;
// Normalize turns it into an Event afterwards. Everything here is plain data with
// validation at the border, and depends on the standard library alone.
package event

import (
	"path"
	"slices"
	"strings"
	"time"
)

// Platform is the kind of chat of a workspace.
type Platform string

// The platforms. Web is any client of the daemon's own HTTP API.
const (
	Slack       Platform = "slack"
	Discord     Platform = "discord"
	BlueBubbles Platform = "bluebubbles"
	Bridge      Platform = "bridge" // a program of the operator's own
	Web         Platform = "web"
)

// ThreadKey is the canonical name of one conversation, such as
// "slack:acme:C06RY3YBSLE:1700000000.000100". One function per platform makes
// it; to all other code it is opaque.
type ThreadKey string

// workstreams begins the keys of the threads of workstreams.
const workstreams = "workstream:"

// WorkstreamThread returns the key of the thread of a workstream.
func WorkstreamThread(id string) ThreadKey { return ThreadKey(workstreams + id) }

// toParent is in the external ids of the messages about a workstream that are for its parent.
const toParent = "/parent/"

// ReportID returns the external id of a message about a workstream that is for its parent. name is unique among them.
func ReportID(id, name string) string { return workstreams + id + toParent + name }

// ReportOf returns the id of the workstream about which Parley has told its parent with the message of an external id. It returns
// false for another message.
func ReportOf(externalID string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(externalID, workstreams)
	id, _, about := strings.Cut(rest, toParent)
	return id, ok && about
}

// IsWorkstream reports whether a thread is that of a workstream. No platform shows it.
func IsWorkstream(thread ThreadKey) bool { return strings.HasPrefix(string(thread), workstreams) }

// persons begins the keys of the threads of posts to a person whose conversation is not open yet.
const persons = "person:"

// PersonThread returns the key of the thread of posts to a person, by the platform's id, until their
// conversation is open. No platform shows it.
func PersonThread(workspace, user string) ThreadKey {
	return ThreadKey(persons + workspace + ":" + user)
}

// PersonOf returns the platform's id of the person of such a thread; empty for another thread.
func PersonOf(thread ThreadKey) (user string) {
	if rest, ok := strings.CutPrefix(string(thread), persons); ok {
		_, user, _ = strings.Cut(rest, ":")
	}
	return user
}

// ticks begins the keys of the threads of the ticks of schedules.
const ticks = "schedule:"

// TickThread returns the key of the own thread of a tick, by the id of the message that asks.
func TickThread(message string) ThreadKey { return ThreadKey(ticks + message) }

// IsTick reports whether a thread is that of one tick of a schedule. An answer there goes to the top of its
// channel, where it begins another thread.
func IsTick(thread ThreadKey) bool { return strings.HasPrefix(string(thread), ticks) }

// ScheduleSender returns the sender of the messages of a schedule.
func ScheduleSender(id string) string { return ticks + id }

// Kind is the kind of event in an envelope.
type Kind string

// The kinds, in the spelling of replay and the metrics.
const (
	KindMessage  Kind = "message"
	KindEdit     Kind = "edit"
	KindDelete   Kind = "delete"
	KindReaction Kind = "reaction"
	KindMember   Kind = "member"
	KindCommand  Kind = "command" // a person used a command or a shortcut of ours
	KindAction   Kind = "action"  // a person pressed a button of ours
	KindOther    Kind = "other"
)

// MakesMessage reports whether an event of the kind is a message of its own: a person or
// a bot wrote or did something in their own name.
func (k Kind) MakesMessage() bool {
	return k == KindMessage || k == KindCommand || k == KindAction
}

// Envelope is a raw payload as the platform sent it.
type Envelope struct {
	Workspace  string
	Platform   Platform
	Transport  string    // http, socket, gateway, webhook, api, replay, Backfilled, Reread, ByOperator, ByParley or ByProgram
	ReceivedAt time.Time // zero if the arrival is unknown: then the age is not judged
	Body       []byte
	// Retried says that the platform has sent the payload before.
	Retried bool
	// Queued is called once the envelope has its place in the order of the commits of its
	// thread; nil if the adapter does not need it. It may be called more than once, and is
	// not called if the envelope is refused before.
	Queued func()
	// Batch is the series to which the envelope belongs; nil for none.
	Batch *Batch
	// Parsed is the adapter's parsed form of Body; nil for none. It belongs to the
	// adapter, is never stored, and never changes.
	Parsed any
}

// Disposition is the result of an envelope.
type Disposition string

// The dispositions, in the spelling of replay.
const (
	Stored    Disposition = "stored"
	Updated   Disposition = "updated"
	Duplicate Disposition = "duplicate"
	Ignored   Disposition = "ignored"
	Dead      Disposition = "dead"
)

// The reasons. They are fixed because users' scripts compare them.
const (
	ReasonMention        = "mention"         // runs: the message names our bot
	ReasonDirect         = "direct"          // runs: a direct message, or a web thread
	ReasonReply          = "reply"           // runs: it answers a message of ours
	ReasonOpen           = "open"            // runs: require_mention is false here
	ReasonFollowed       = "followed"        // runs: it continues a thread that we have answered
	ReasonCommand        = "command"         // runs: a command or a shortcut of ours
	ReasonNoMention      = "no-mention"      // passive: nothing addresses us
	ReasonPassive        = "passive"         // passive: the sender asked for it
	ReasonEmpty          = "empty"           // passive: it has no words and no files, maybe not yet
	ReasonNotForUs       = "not-for-us"      // passive: its recipient_id names another bot
	ReasonTooOld         = "too-old"         // passive: older than max_age
	ReasonLoopGuard      = "loop-guard"      // passive: too many runs begun by bots
	ReasonLimit          = "limit"           // passive: too many runs begun within limits, or no tokens left
	ReasonFromMe         = "from-me"         // passive: the account owner wrote it
	ReasonSMS            = "sms"             // passive, or ignored: a text message, whose sender may be anybody
	ReasonAction         = "action"          // passive: a button; its question is ours. runs: it answers a question of an agent
	ReasonNoAnswer       = "no-answer"       // passive: it does not answer the agent's question, or its sender may not
	ReasonOwnMessage     = "own-message"     // ignored: the platform sent our own message
	ReasonBotMessage     = "bot-message"     // passive: a bot's, shown as context. ignored: this bot is not allowed here
	ReasonNotAddressed   = "not-addressed"   // ignored: passive_memory is false
	ReasonPaused         = "paused"          // an operator has paused the agent there
	ReasonUserRefused    = "user-refused"    // ignored: not in allow_users
	ReasonStrangerAsked  = "stranger-asked"  // ignored: not in allow_users; approvers are asked about the sender
	ReasonStrangerWaits  = "stranger-waits"  // ignored: approvers have not answered yet about the sender
	ReasonStrangerNo     = "stranger-no"     // ignored: an approver or an operator has refused the sender
	ReasonStrangersFull  = "strangers-full"  // ignored: not in allow_users; as many questions are open as may be
	ReasonServerRefused  = "server-refused"  // ignored: not from a server of allow_servers
	ReasonChannelRefused = "channel-refused" // ignored: not in allow_channels
	ReasonNoChange       = "no-change"       // ignored: an update without effect
	ReasonDeleted        = "deleted"         // ignored: a change to a deleted message
	ReasonForgotten      = "forgotten"       // ignored: its author was forgotten. none: its words have left the store
	ReasonUnknownMessage = "unknown-message" // ignored: its target did not arrive
	ReasonMember         = "member-event"    // ignored: someone joined or left
	ReasonOtherWorkspace = "other-workspace" // ignored: another team's or app's event
	ReasonSystemMessage  = "system-message"  // ignored: the platform itself wrote it
	ReasonNotAnEvent     = "not-an-event"    // ignored: valid JSON, but an unknown event
	ReasonWorkstream     = "workstream"      // runs, or passive: Parley's own, about a workstream
	ReasonSchedule       = "schedule"        // runs: a schedule asks
	ReasonInteraction    = "interaction"     // ignored: a form, or an interaction without a message
	ReasonGroupEvent     = "group-event"     // ignored: a chat's name or picture changed
)

// Keys are the facts about a raw payload that the durable accept needs: its names, its
// thread, and its result if it needs no further work. Reading them is pure and cheap.
type Keys struct {
	Kind Kind
	// Dedupe is unique in the workspace: the same key is the same payload.
	Dedupe string
	// AltKey is the dedupe key of another payload that may report the same
	// message (Slack's message and app_mention); empty for none. The later of the
	// two follows the earlier one's thread.
	AltKey string
	// Thread is the thread of the envelope, if the payload names it.
	Thread ThreadKey
	// PostID is the external id of the message on which a person pressed a button or used
	// a shortcut; empty for none. If that message is a post of ours, the payload belongs
	// to the thread of the post, else to Thread.
	PostID string
	// Channel is the platform's channel of Thread.
	Channel Channel
	// MessageID is the external id of the message that the payload makes (kinds
	// message, command, action) or is about (edit, delete, reaction). An envelope without a
	// Thread waits for its MessageID's.
	MessageID string
	// Result is the result of a payload that needs no further work, because it is not
	// for us or cannot be decoded; nil for any other payload.
	Result *Result
	// Needs names the fact of Self that must be known first, such as "team". The envelope
	// is pending until then. It is usually empty.
	Needs string
	// Parsed is the Envelope.Parsed for further calls about the same envelope; nil if
	// the adapter reads the body each time.
	Parsed any
}

// RunKey returns the Dedupe of a message that asks for a run under a name that its client gave. The
// journal finds a run that has not begun by it.
func RunKey(threadID, name string) string { return "run:" + threadID + ":" + name }

// Result is an envelope's result, with its reason.
type Result struct {
	Disposition Disposition
	Reason      string // of Ignored
	Error       string // of Dead: for the operator, may contain fields and bytes
}

// Ignore returns the result of a payload that we understand and do not store.
func Ignore(reason string) *Result { return &Result{Disposition: Ignored, Reason: reason} }

// Refuse returns the result of a payload that cannot be used. It shortens the error's text.
func Refuse(err error) *Result {
	return &Result{Disposition: Dead, Error: Cut(err.Error(), maxFaultText)}
}

// ChannelType is the kind of audience of a channel. It decides whether a message there
// triggers a run.
type ChannelType string

// The channel types. Unknown is a channel whose type no payload has named yet.
const (
	ChannelUnknown ChannelType = ""
	ChannelRoom    ChannelType = "room"   // a channel, thread channel or group chat of a room's kind
	ChannelDirect  ChannelType = "direct" // one person and the bot
	ChannelGroup   ChannelType = "group"  // a group direct message
)

// Channel is a conversation's place on a platform.
type Channel struct {
	ID   string
	Type ChannelType
	// Parent is the channel that a thread belongs to if the thread is a channel itself; empty
	// if there is none or the payload does not name it.
	Parent string
}

// Place has the names of a channel's place, as its members see them. A name is empty if there is none.
type Place struct {
	Workspace string `json:"workspace,omitempty"` // of a Slack team or a Discord server
	Channel   string `json:"channel,omitempty"`
	Topic     string `json:"topic,omitempty"`  // of the channel
	Thread    string `json:"thread,omitempty"` // the title, if the channel is a thread
}

// Self identifies our own account on a platform. An empty field is unknown.
type Self struct {
	TeamID string `json:"team_id,omitempty"`
	// EnterpriseID is the organisation that a Slack team belongs to.
	EnterpriseID string `json:"enterprise_id,omitempty"`

	UserID string `json:"user_id,omitempty"`
	BotID  string `json:"bot_id,omitempty"`
	AppID  string `json:"app_id,omitempty"`
	// Address is the account's own address on BlueBubbles, such as +15551234567.
	Address string `json:"address,omitempty"`
}

// Event is the meaning of an envelope. An event of kind other that is not ignored has
// changed the adapter's state alone.
type Event struct {
	Kind Kind
	// Ignored, if not empty, is the reason for which nothing is recorded.
	Ignored string
	// Message is the message (kinds message, command, action), or its new state (kind
	// edit; nil if the payload does not carry all of it).
	Message *Message
	// Server is the platform's server from which the event comes: a Discord server, or the team of a
	// Slack sender. It is empty if there is none, as in a direct message on Discord, or if the payload
	// does not name it.
	Server string
	// Targets are the external ids that an edit, delete or reaction is about.
	Targets []string
	// Carries are the external ids of further messages whose words the payload contains, such as the
	// root of a thread or the message that a shortcut was used on. Those of Message's quotations
	// need not be among them. If one of them is deleted, the body of the envelope is emptied.
	Carries []string
	// Reaction is set for kind reaction. Intake adds a Message that describes it, if
	// policy permits. A Message whose words say that its author has reacted also has a Reaction:
	// if the thread has the message that its Quotes describe, the event is of kind reaction.
	Reaction *Reaction
}

// Addressed is how a message addresses us, as far as its payload shows.
type Addressed string

// How a message may address us; it is also the reason of the run. If only the store can
// tell that a message answers ours, policy finds that by Message.ReplyTo.
const (
	AddressedNone    Addressed = ""
	AddressedMention Addressed = ReasonMention
	AddressedDirect  Addressed = ReasonDirect
	AddressedReply   Addressed = ReasonReply
	AddressedCommand Addressed = ReasonCommand
	// AddressedAction answers a question of ours: the message is stored, and triggers no
	// run.
	AddressedAction Addressed = ReasonAction
)

// Internal is a message that Parley itself puts into a thread, such as the task of a workstream. It is the body of an
// envelope with the transport ByParley, so that any node can record it.
type Internal struct {
	// ID makes the message the same as an earlier one with the ID.
	ID      string    `json:"id"`
	Thread  ThreadKey `json:"thread"`
	Channel string    `json:"channel"`
	Parent  string    `json:"parent,omitempty"` // of the channel
	From    string    `json:"from,omitempty"`   // the agent whose words they are; empty for Parley's own
	// Sender and Name are those of the client whose words Parley passes on; empty for any other message.
	Sender string `json:"sender,omitempty"`
	Name   string `json:"name,omitempty"`

	Agent string `json:"agent"`          // that it is for
	Runs  bool   `json:"runs,omitempty"` // it asks the agent; otherwise the agent's next input has it
	// Answers says that it is a message to a workstream, which may answer the workstream's question if that is no approval.
	Answers bool   `json:"answers,omitempty"`
	Stops   bool   `json:"stops,omitempty"` // it ends what goes on in the thread; then it has no text
	Text    string `json:"text,omitempty"`
	// CausedIn is the run that caused the message, such as the one that launched a workstream. Cause is the sender who asked
	// for that run, if the run is not named, and Alone says that neither a person nor a bot did so directly.
	CausedIn string `json:"caused_in,omitempty"`
	Cause    string `json:"cause,omitempty"`
	Alone    bool   `json:"alone,omitempty"`
	// Schedule is the id of the schedule that asks, and PlannedAt the time for which the message was planned. Its run
	// has the ID of the message. Empty for any other message.
	Schedule  string    `json:"schedule,omitempty"`
	PlannedAt time.Time `json:"planned_at,omitzero"`
}

// Message is one utterance of a person or bot.
type Message struct {
	// ExternalID is unique in the workspace: Slack "<channel>/<ts>" or
	// "<channel>/command-<id>", Discord's id, BlueBubbles' guid, the client's id
	// or a UUIDv7 on the web.
	ExternalID string
	// ClientMessageID is the web client's idempotency key; empty elsewhere.
	ClientMessageID string
	Thread          ThreadKey
	Channel         Channel
	// Content is the typed text, decoded and otherwise untouched.
	Content     string
	Metadata    Metadata
	Attachments []Attachment
	// AllFiles says about an edit that each other file of the message was removed.
	AllFiles bool
	// Names are the names that the payload has for the tokens of the content.
	Names Names
	// SentAt is the platform's time; zero if the payload has none.
	SentAt time.Time
	// EditedAt is the platform's time of the last edit; zero if the payload has none.
	EditedAt time.Time
	// Revision distinguishes the states of a message (Slack's edited.ts, Discord's
	// edited_timestamp, for BlueBubbles dateEdited and a hash). It is empty for a message that was
	// never edited, on platforms that show that.
	Revision string
	// Dated is the number of bytes at the beginning of Revision that are the time of the edit. Those
	// of an earlier edit are less. It is 0 if revisions have no order.
	Dated int
	// Addressed is how the message addresses us, by the payload alone.
	Addressed Addressed
	// Called is the word in the text that addresses us, on a platform without mentions;
	// empty for none.
	Called string
	// Command is the word of a command of the platform that asks the agent nothing, such as
	// "stop"; empty for any other message.
	Command string
	// Pressed is the id of the pressed button, if a post of ours gave it that id; empty for any
	// other message.
	Pressed string
	// Answers is the run whose question the message of an operator answers; empty for the message of
	// anybody else.
	Answers string
	// Internal says that Parley itself puts the message into the thread; nil for the message of anybody else.
	Internal *Internal
	// Injected says that a program has put the message into the thread; nil for the message of anybody else.
	Injected *Injected
	// LimitedAs is the sender whose limits count the runs of a message, if a caller of our API has
	// several ids; empty for SenderID.
	LimitedAs string
	// Mentions are the callers of our API that the message mentions, each once and in order.
	Mentions []string
	// ReplyTo is the external id of the message that this one answers; empty for
	// none. A message that answers ours addresses us.
	ReplyTo string
	// FollowUp says that the message is in a thread of a room, not in the room itself, and
	// mentions nobody.
	FollowUp bool
	// AltSenderID is another id of a bot, without a namespace, that the lists of the policy may name
	// instead of the sender's: the user of a Slack bot, the application of a Discord webhook; empty
	// for none.
	AltSenderID string
	// Groups are the ids of the sender's groups, such as the roles on Discord; nil if the payload does not name them.
	Groups []string
	// Through is the app by whose hand a bot's message may be a person's; nil for none.
	Through *Through
	// Own says that the payload itself shows that we wrote it.
	Own bool
	// Passive says that its sender wants it stored only, even if it addresses us.
	Passive bool
	// AwaitsFiles says that files of the message, or more of them, come later.
	AwaitsFiles bool
	// TextMessage says that the message came over the telephone network, as SMS or RCS, where a sender may
	// claim any address.
	TextMessage bool
	// Continues says that the message may be the rest of one that its author sent just before, which
	// the platform has split.
	Continues bool
	// OwnKey is the idempotency key of a delivery of ours that this payload
	// carries (a BlueBubbles tempGuid, Slack metadata); empty for none.
	OwnKey string
	// Quoted is the message that this one answers with a quotation, to be shown
	// as context if the window does not contain it.
	Quoted *Quote
	// Forwarded are messages passed on inside this one: context, not content.
	Forwarded []Quote
	// RunID is the client's own id of the run that the message asks for, which is a turn of
	// its own; empty elsewhere. RunInput is the rest of the client's request for that run: a
	// JSON object for the agent, or nil.
	RunID    string
	RunInput []byte
	// Known is set for the messages of agents outside Parley.
	Known *Known
	// OpenedOn is the external id of the message of another thread on which this
	// message's thread was opened; empty for none.
	OpenedOn string
}

// Names are the names of people, groups and channels by their tokens, such as "<@80351110224678912>".
type Names map[string]string

// In returns the names whose tokens the text contains; nil for none. It reads the text once, however many
// names there are.
func (n Names) In(text string) (found Names) {
	for len(n) > 0 {
		end := strings.IndexByte(text, '>') + 1
		if end == 0 {
			break
		}
		if begin := strings.LastIndexByte(text[:end], '<'); begin >= 0 {
			if name, ok := n[text[begin:end]]; ok {
				if found == nil {
					found = Names{}
				}
				found[text[begin:end]] = name
			}
		}
		text = text[end:]
	}
	return found
}

// Through is an app that has written a message with the token of a user. The app's own messages look the same, with its bot as the user.
type Through struct {
	App     string // its id
	User    string // the user's id, without a namespace
	Mention string // the token that mentions the user
}

// Quote is a message inside another message.
type Quote struct {
	ExternalID string `json:"id,omitempty"`
	// Name and MentionToken attribute the line; both empty for a forward whose
	// author the platform does not name.
	Name         string `json:"name,omitempty"`
	MentionToken string `json:"mention_token,omitempty"`
	SenderID     string `json:"sender_id,omitempty"`
	Content      string `json:"content"`
	Names        Names  `json:"names,omitempty"` // as in Message
	Files        int    `json:"files,omitempty"`
	// FileNames are the names of those files that are attachments of the message that quotes or
	// forwards this one.
	FileNames []string `json:"file_names,omitempty"`
	// Own is true for our own message.
	Own bool `json:"own,omitempty"`
	// Hidden says that the policy refuses the author or the channel: then the quotation
	// has nothing but its ExternalID.
	Hidden bool `json:"hidden,omitempty"`
	// Channel is the platform's channel of a forwarded message; empty if the payload does
	// not name it.
	Channel string `json:"channel,omitempty"`
	// Server is the server of a forwarded message, as in Event; empty if the payload does not name it.
	Server string `json:"server,omitempty"`
	// SenderType is the author's; empty if the payload does not show it. AltSenderID is as in Message.
	SenderType  SenderType `json:"sender_type,omitempty"`
	AltSenderID string     `json:"alt_sender_id,omitempty"`
	// Attached are the files of the message until Message.AttachQuoted. They are not
	// stored with the quotation.
	Attached []Attachment `json:"-"`
}

// AttachQuoted makes the files of the quoted and forwarded messages attachments of the message, and
// leaves their names in the quotations. Calling it again changes nothing.
func (m *Message) AttachQuoted() {
	attach := func(q *Quote) {
		for _, file := range q.Attached {
			if !file.Gone {
				q.FileNames = append(q.FileNames, file.Name)
				m.Attachments = append(m.Attachments, file)
			}
		}
		q.Attached = nil
	}
	if m.Quoted != nil {
		attach(m.Quoted)
	}
	for i := range m.Forwarded {
		attach(&m.Forwarded[i])
	}
}

// Reaction is an emoji put on a message or taken from it.
type Reaction struct {
	Emoji    string `json:"emoji"` // the platform's name for it, or the emoji itself
	SenderID string `json:"sender_id"`
	Part     int    `json:"part,omitempty"` // BlueBubbles: which part of the message
	Removed  bool   `json:"removed,omitempty"`
	// All says that all reactions are removed: of this emoji, or of any if Emoji is
	// empty.
	All bool `json:"all,omitempty"`
	// The fields below are values of the contract's metadata, if the payload has them. They
	// are not stored with the reaction.
	SenderName        string     `json:"-"`
	SenderType        SenderType `json:"-"`
	MentionToken      string     `json:"-"`
	ChannelExternalID string     `json:"-"` // empty: the channel's id
	IsFromMe          *bool      `json:"-"`
	GUID              string     `json:"-"` // of the reaction itself
	TextMessage       bool       `json:"-"` // as in Message
	// Quotes describes the target of a reaction that a message's words express; nil for any other
	// reaction.
	Quotes *Quotation `json:"-"`
}

// Quotation describes a message by a part of it.
type Quotation struct {
	Text  string // the beginning of its text; empty: it has a file
	Media string // the beginning of the file's media type, such as "image/"; empty: of any type
}

// Attachment is a file that came with a message. It holds no URL: a platform's
// links expire and may carry credentials, so files are fetched by id.
type Attachment struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"` // bytes, 0 if unknown
	ID       string `json:"id"`   // the platform's id, for the fetch
	// Type is TypeVoice for a voice note; empty for any other file.
	Type string `json:"type,omitempty"`
	// DurationMS is the length of a recording in milliseconds; 0 if unknown.
	DurationMS int64 `json:"duration_ms,omitempty"`
	// Words are the text of the file, if the payload has all of it: a transcription, or a whole
	// preview. They are an agent's input and never content.
	Words string `json:"-"`
	// Gone says that the platform has removed the file or does not show it.
	Gone bool `json:"-"`
	// Copy is the place of the stored copy; nil for none yet.
	Copy *Copy `json:"-"`
}

// IsEmpty reports whether the message has no words and no files. It asks nothing, even if it addresses us: its content may
// come later, or the platform shows something that Parley cannot read, such as a gift.
func (m *Message) IsEmpty() bool {
	return strings.TrimSpace(m.Content) == "" && m.Metadata.Subject() == "" && len(m.Attachments) == 0 && len(m.Forwarded) == 0 && m.Quoted == nil
}

// NeedsConversion reports whether the file has a form in which telephones and scanners keep pictures and recordings and
// which models do not read: HEIC, HEIF, TIFF or CAF. Its platform may have the file in another form, too.
func (a Attachment) NeedsConversion() bool {
	kind, _, _ := strings.Cut(strings.ToLower(a.MimeType), ";")
	switch strings.TrimSpace(kind) {
	case "image/heic", "image/heif", "image/heic-sequence", "image/heif-sequence", "image/tiff", "audio/x-caf", "audio/caf":
		return true
	case "", "application/octet-stream":
		return slices.Contains([]string{".heic", ".heif", ".tif", ".tiff", ".caf"}, strings.ToLower(path.Ext(a.Name)))
	}
	return false
}

// TypeVoice is the type of a voice note, which its sender recorded in the chat itself.
const TypeVoice = "voice"

// Copy is the place of a stored file (package attach).
type Copy struct{ Bucket, Path string }
