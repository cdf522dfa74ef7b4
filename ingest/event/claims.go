package event

import (
	"slices"
	"strings"
)

// Claimant is the kind of those who give metadata, apart from the adapters of platforms and Parley itself. A caller may be of
// several kinds.
type Claimant uint8

// The claimants.
const (
	// Client writes in its own name: a token with senders: own, a signed token, and any token on the routes that name no workspace.
	Client Claimant = 1 << iota
	// Receiver is a client whose token has the answers delivered to a program.
	Receiver
	// Integration is a token with senders: any in its own workspace. It connects a chat that Parley does not know, so it may set what
	// the adapter of a platform sets.
	Integration
	// Program injects messages into the workspace of a platform.
	Program
	// Agent is an agent of Parley that gives keys with its answer.
	Agent
	// Bridging connects a chat that Parley does not know, as a platform of its own. It says who has written, and its workspace is a
	// part of each sender's id.
	Bridging
)

// Claim is a key of the metadata that Parley writes or trusts, with those who may set it besides Parley and the adapters of
// platforms. Anybody may set a key without a claim.
type Claim struct {
	Key string
	By  Claimant // 0 for nobody
	// Instead says what somebody does who may not set the key; empty for the usual words.
	Instead string
}

// Keys of the metadata that Parley writes or trusts and the contract does not know.
const (
	// DispatchType and DispatchConfig are values of a message's program, which gets them back with the answer.
	DispatchType   = "dispatch_type"
	DispatchConfig = "dispatch_config"
	// KeySubject is the subject line that the author typed above the content.
	KeySubject = "subject"
	// KeyAction is the button that the author pressed. Package ingest checks that there is such a button, and that the author may press it.
	KeyAction = "action"
	// KeyMentions are the actors whom the message mentions.
	KeyMentions = "mentions"
	// KeyRunID, KeyMessageID, KeyStage, KeyLatency and KeyToolName are about the run of a message.
	KeyRunID     = "run_id"
	KeyMessageID = "message_id"
	KeyStage     = "stage"
	KeyLatency   = "latency_ms"
	KeyToolName  = "tool_name"
	// KeyPlannedAt is the time for which a schedule's message was planned.
	KeyPlannedAt = "planned_at"
	// KeyCausedBy is the sender who asked for the run that has caused a message of Parley itself.
	KeyCausedBy = "caused_by"
	// KeyPostedBy names who had a post written.
	KeyPostedBy = "posted_by"
	// KeySentBy is the id of the token that has sent a message in the name of another person. The answer is delivered to the token.
	KeySentBy = "sent_by"
	// KeyProxiedBy is the bot that has posted a copy of a person's message, or the app that has written with the person's token.
	KeyProxiedBy = "proxied_by"
	// KeyTraceparent is the place in a trace of the caller who has sent the message, as W3C Trace Context writes it.
	KeyTraceparent = "traceparent"
	// KeyBlocks is the layout of the blocks in which a client sent the content, and KeyFirstFile the place of the first file.
	KeyBlocks    = "content_blocks"
	KeyFirstFile = "user_message_attachments"
	// KeyCard is the card of a message. The code that reads it checks its form.
	KeyCard = "uiSchema"
	// KeyToolCalls are the calls of a client's functions with which an agent has ended its run.
	KeyToolCalls = "toolCalls"
	// KeyFiles are the files of an agent's answer.
	KeyFiles = "files"
)

// writers are those who write messages of their own.
const writers = Client | Integration | Program

const (
	onlyIntegrations = "is allowed only for an integration's token"
	onlyParley       = "must be left out: only Parley writes it"
)

// Claims returns the list of the keys of the metadata that Parley or a platform writes, or that Parley trusts.
func Claims() []Claim {
	return []Claim{
		// A Client may only repeat its own identity.
		{Key: "source", By: writers | Bridging},
		{Key: "sender_id", By: writers | Bridging},
		{Key: "sender_display_name", By: writers | Bridging},
		{Key: "sender_type", By: writers | Bridging},
		{Key: "channel_external_id", By: Integration},
		{Key: "mention_token", By: Integration},
		{Key: "thread_context", By: Integration},
		{Key: "is_from_me", By: Integration},
		{Key: "passive", By: writers},
		{Key: "include_in_memory", By: writers},
		{Key: "trigger_rag", By: writers},
		{Key: "recipient_id", By: Integration | Program}, // it names an agent of the workspace, or the message is context
		{Key: "message_guid", By: Integration},

		{Key: KeySubject, By: writers | Agent | Bridging},
		{Key: KeyCard, By: writers | Agent},
		{Key: KeyAction, By: Client | Integration, Instead: "must be left out: a button is pressed by a person of the workspace"},
		{Key: KeyMentions, Instead: "must stand beside the metadata, on the routes that take mentions"},
		{Key: DispatchType, By: Receiver | Integration | Agent, Instead: "must stand beside the metadata of a program's message"},
		{Key: DispatchConfig, By: Receiver | Integration | Agent, Instead: "must stand beside the metadata of a program's message"},
		{Key: KeyFiles, By: writers},
		{Key: KeyToolCalls, By: Agent, Instead: "must be left out: only an agent's answer has it"},

		{Key: KeyRunID},
		{Key: KeyMessageID},
		{Key: KeyStage},
		{Key: KeyLatency},
		{Key: KeyToolName},
		{Key: KeyPlannedAt},
		{Key: KeyCausedBy},
		{Key: KeyPostedBy},
		{Key: KeySentBy},
		{Key: KeyProxiedBy},
		{Key: KeyBlocks},
		{Key: KeyFirstFile},

		// The adapters of platforms write these.
		{Key: "binding_display_name", By: Integration},
		{Key: "slack_action", By: Integration},
		{Key: "slack_callback_id", By: Integration},
		{Key: "slack_context_channel_id", By: Integration},
		{Key: "slack_reaction", By: Integration},
		{Key: "discord_action", By: Integration},
		{Key: "discord_reaction", By: Integration},
		{Key: "bluebubbles_reaction", By: Integration},
	}
}

// claims is the list as the checks read it.
var claims = Claims()

// claimOf returns the claim of a key, in whatever case it is written: many readers of JSON do not tell cases apart. It is nil for
// a key without one.
func claimOf(key string) *Claim {
	i := slices.IndexFunc(claims, func(c Claim) bool { return strings.EqualFold(c.Key, key) })
	if i < 0 {
		return nil
	}
	return &claims[i]
}

// MayClaim reports whether a claimant may set a key of the metadata.
func MayClaim(by Claimant, key string) bool { return refusal(by, key) == "" }

// refusal returns the fault of a key that a claimant sets; empty for none.
func refusal(by Claimant, key string) string {
	c := claimOf(key)
	switch {
	case c == nil, by&Integration != 0 && key != c.Key && IsKnown(c.Key): // the contract's keys match exactly
		return ""
	case key != c.Key:
		return "must be left out: it differs from the key " + c.Key + " only in its case"
	case c.By&by != 0:
		return ""
	case c.Instead != "":
		return c.Instead
	case c.By&Integration != 0 && by&Bridging != 0:
		return "must be left out: Parley sets it itself, or the policy decides it"
	case c.By&Integration != 0 && by&Program == 0:
		return onlyIntegrations
	case c.By&Integration != 0:
		return "must be left out: only a platform knows it"
	}
	return onlyParley
}

// RefusedTo returns a fault for each key of the metadata that is set and that a claimant may not set.
func (m *Metadata) RefusedTo(by Claimant) (faults FieldErrors) {
	refuse := func(key string) {
		fault := refusal(by, key)
		faults.Check(fault == "", "metadata."+clip(key), fault)
	}
	for _, f := range m.fields() {
		if f.text != nil && *f.text != "" || f.flag != nil && *f.flag != nil {
			refuse(f.key)
		}
	}
	for _, extra := range m.Extra {
		if string(extra.Value) != "null" {
			refuse(extra.Key)
		}
	}
	return faults
}
