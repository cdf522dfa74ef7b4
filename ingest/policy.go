package ingest

import (
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
)

// gate judges events of every kind.
type gate struct {
	Settings
	kind event.Kind
	// senders is the namespace of the platform's people; see Workspace.Senders.
	senders string
	// pause covers the channel; nil for none.
	pause *Pause
	// people are the groups of people; nil if the settings name none.
	people *members
	// admitted are the strangers who are always admitted where the policy asks about strangers, by sender_id.
	admitted map[string]bool
	// guest is a stranger who is judged as if a list admitted the person; empty for none.
	guest string
	// channel is the event's; a list that admits its parent admits it.
	channel event.Channel
	// server is the event's, as in event.Event.
	server string
	// arrived is the time of the envelope. If it is zero, the age is not judged.
	arrived time.Time
	now     func() time.Time
	// over means that a limit is reached. ends is the time at which it ends, if it is one of tokens; zero for one of runs.
	over bool
	ends time.Time
	// notForUs means that the message is for a bot that is no agent of the workspace.
	notForUs bool
	// injected says that a program has given the message.
	injected bool
	// above is the key of the thread whose work a command below its first post means, too; empty for none.
	above event.ThreadKey
}

// gate returns the gate of a channel, without what only an event has.
func (w *workspace) gate(channel event.Channel) gate {
	return gate{Settings: w.config.Settings(channel.ID, channel.Parent), senders: w.config.Senders, people: w.members(), admitted: w.strangers.admitted(w.config.ID), channel: channel}
}

// decide judges a message, or the new state of one. Every decision has a reason.
func (g gate) decide(m *event.Message, look record.Look) record.Decision {
	switch {
	case m.Answers != "":
		return g.byOperator(m, look)
	case m.Internal != nil:
		return g.byParley(m, look)
	}
	if q := questionOf(m); q != "" {
		return g.decides(m, q, look)
	}
	if reason := g.refusesHere(senderOf(m), m.Channel); reason != "" {
		return g.refused(m, reason, look)
	}
	if m.TextMessage && g.Policy.sms() == SMSIgnored {
		return record.Decision{Ignore: true, Trigger: messages.TriggerNone, Reason: event.ReasonSMS}
	}
	if g.asGiven() && g.refusesPress(m, look) {
		return record.Decision{Ignore: true, Trigger: messages.TriggerNone, Reason: event.ReasonAction}
	}
	addressed := g.addressed(m, look)
	d := g.trigger(m, addressed, look)
	command := g.command(m)
	switch {
	case command != "" && d.Trigger == messages.TriggerRun:
		d = g.obey(m, command)
	case command != "" && d.Reason == event.ReasonTooOld:
		d.Trigger = messages.TriggerNone
	case d.Reason == event.ReasonLimit && isTold(m):
		d.Tell = tell(m, g.overText())
	default:
		d = g.restarts(m, g.pauses(m, g.answers(m, d, look), look), look)
	}
	if m.AwaitsFiles && (d.Trigger == messages.TriggerRun || m.IsEmpty() && addressed != event.AddressedNone) {
		d.AwaitsFiles = true
	}
	d.Metadata, d.Budgets = g.metadata(m, d, addressed), g.budgets(m, g.now())
	d.NoMemory = g.asGiven() && m.Metadata.IncludeInMemory != nil && !*m.Metadata.IncludeInMemory
	return d
}

// sender is the author of a message or a quotation, or who reacted. Its kind is empty if the payload
// does not show it.
type sender struct {
	id, altID string // altID as in event.Message.AltSenderID
	kind      event.SenderType
}

func senderOf(m *event.Message) sender {
	return sender{m.Metadata.SenderID, m.AltSenderID, m.Metadata.SenderType}
}

// refusesHere returns the reason for which the sender of the event itself is refused. It is empty for an
// admitted one. A message without a server may be from anybody who shares one with the bot.
func (g gate) refusesHere(s sender, channel event.Channel) string {
	private := channel.Type == event.ChannelDirect || channel.Type == event.ChannelGroup
	switch list := g.Policy.AllowServers; {
	case list == nil:
	case g.server != "" && !slices.Contains(list, g.server), g.server == "" && private && !g.isListed(s.id):
		return event.ReasonServerRefused
	}
	return g.refuses(s, channel.ID)
}

// refuses returns the reason for which a sender is refused. It is empty for an admitted sender. A
// sender of unknown kind must be on a list if there is one.
func (g gate) refuses(s sender, channel string) string {
	everybody, bots := g.Policy.Everybody(), g.Policy.AllowBots
	isBot := g.admits(bots, s.id) || s.altID != "" && g.isOn(bots, g.senders+":"+s.altID)
	switch {
	case s.kind == event.Bot && (g.Policy.BotMessages == BotsIgnored || !isBot):
		return event.ReasonBotMessage
	case s.kind == event.Human && !everybody && !g.isListed(s.id):
		return event.ReasonUserRefused
	case s.kind == "" && (!everybody || bots != nil) && !g.isListed(s.id) && !g.isOn(bots, s.id):
		return event.ReasonUserRefused
	case channel != "" && !g.admitsChannel(channel):
		return event.ReasonChannelRefused
	}
	return ""
}

// admits reports whether a list of places admits an id. A nil list admits everything, an empty one
// nothing.
func admits(list []string, id string) bool { return list == nil || slices.Contains(list, id) }

// admitsChannel reports whether the list of channels admits a channel. A quotation or a forward
// names no parent, so only the event's own channel can be admitted by its parent.
func (g gate) admitsChannel(id string) bool {
	list := g.Policy.AllowChannels
	return admits(list, id) || id == g.channel.ID && g.channel.Parent != "" && admits(list, g.channel.Parent)
}

// hide takes everything but the id from each quotation and each forward of a message whose
// author or channel is refused, and from each forward whose server is. A forward without an author,
// a channel or a server is refused if there is a list of admitted ones. A quotation is of the message's
// own channel. The files of those that are left become files of the message.
func (g gate) hide(m *event.Message) {
	if m.Quoted != nil {
		*m.Quoted = g.quoted(*m.Quoted, m.Channel.ID)
	}
	for i, q := range m.Forwarded {
		m.Forwarded[i] = g.forwarded(q)
	}
	m.AttachQuoted()
}

// quoted returns a quotation of a message of a channel as the policy shows it.
func (g gate) quoted(q event.Quote, channel string) event.Quote {
	if q.Own || q.Hidden || g.refuses(sender{q.SenderID, q.AltSenderID, q.SenderType}, channel) == "" && g.admitsChannel(channel) {
		return q
	}
	return event.Quote{ExternalID: q.ExternalID, Hidden: true}
}

// forwarded returns a forward as the policy shows it.
func (g gate) forwarded(q event.Quote) event.Quote {
	if !q.Own && !q.Hidden && !admits(g.Policy.AllowServers, q.Server) {
		return event.Quote{ExternalID: q.ExternalID, Hidden: true}
	}
	return g.quoted(q, q.Channel)
}

// Admits returns the judgement of the present policy of a run's workspace about the stored messages of a channel: whether it
// admits the author and the channel, and the message without the words of quotations and forwards that it refuses. What Parley
// itself, its agents and its operators have said is judged by its channel alone. The server of a channel is not stored, and not
// asked. An author without a kind must be on a list if there is one.
func (in *Ingest) Admits(run *runs.Run, at event.Channel) func(m messages.Message) (messages.Message, bool) {
	w := in.workspace(run.Platform, run.Workspace)
	if w == nil || event.IsWorkstream(run.ThreadKey) && at.ID == run.Channel { // nobody of the platform writes there
		return func(m messages.Message) (messages.Message, bool) { return m, true }
	}
	return w.gate(at).admitsStored
}

// admitsStored judges a stored message; see Ingest.Admits.
func (g gate) admitsStored(m messages.Message) (messages.Message, bool) {
	from, at := sender{id: m.SenderID, altID: m.Quotes.Sender}, g.channel
	switch m.Author {
	case messages.ByHuman:
		from.kind = event.Human
	case messages.ByBot:
		from.kind = event.Bot
	}
	switch {
	case m.Author != messages.ByHuman && m.Author != messages.ByBot && m.Author != "", event.IsOperator(m.SenderID):
		if at.ID != "" && !g.admitsChannel(at.ID) {
			return m, false
		}
	case g.refuses(from, at.ID) != "":
		return m, false
	}
	if q := m.Quotes.Quoted; q != nil {
		m.Quotes.Quoted = new(g.quoted(*q, at.ID))
	}
	m.Quotes.Forwarded = slices.Clone(m.Quotes.Forwarded)
	for i, q := range m.Quotes.Forwarded {
		m.Quotes.Forwarded[i] = g.forwarded(q)
	}
	return m, true
}

// addressed returns how a message addresses us, by its payload or by the message that it
// answers or continues. If policy treats the account owner like other people, the owner's messages
// in a direct chat address us, though their recipient is the other person there.
func (g gate) addressed(m *event.Message, look record.Look) event.Addressed {
	switch {
	case m.Addressed != event.AddressedNone:
		return m.Addressed
	case m.Injected != nil && m.Channel.Type == event.ChannelDirect:
		return event.AddressedDirect
	case g.Policy.FromMe && is(m.Metadata.IsFromMe) && m.Channel.Type == event.ChannelDirect:
		return event.AddressedDirect
	case m.ReplyTo != "" && look.Ours(m.ReplyTo):
		return event.AddressedReply
	case m.Continues:
		return look.Continued(m)
	}
	return event.AddressedNone
}

// lateAge returns the greatest age at which a message that was read from the platform still triggers
// a run. Without backfill, only a poller reads messages, and those sent after the start are new.
func (g gate) lateAge(start time.Time) time.Duration {
	if g.LateAge > 0 {
		return g.LateAge
	}
	return min(g.Policy.MaxAge, g.arrived.Sub(start))
}

func (g gate) trigger(m *event.Message, addressed event.Addressed, look record.Look) record.Decision {
	switch {
	case m.Passive || is(m.Metadata.Passive):
		return passive(event.ReasonPassive)
	case g.notForUs:
		return passive(event.ReasonNotForUs)
	case addressed == event.AddressedAction:
		return passive(event.ReasonAction) // stored even without passive memory: our post asked for the press
	case g.Policy.BotMessages != BotsRun && m.Metadata.SenderType == event.Bot:
		return g.unasked(event.ReasonBotMessage)
	case m.Known != nil && addressed != event.AddressedMention:
		return passive(event.ReasonNoMention) // an agent outside Parley asks another one only by a mention
	case is(m.Metadata.IsFromMe) && !g.Policy.FromMe && addressed != event.AddressedDirect:
		return g.unasked(event.ReasonFromMe)
	case m.TextMessage && g.Policy.sms() == SMSShown:
		return g.unasked(event.ReasonSMS)
	// A client of the API may ask without words, as the contract says, and so may a command.
	case m.IsEmpty() && addressed != event.AddressedCommand && !g.asGiven():
		return g.unasked(event.ReasonEmpty)
	case addressed == event.AddressedNone && (g.Policy.RequireMention || g.kind == event.KindReaction) && !g.follows(m, look):
		return g.unasked(event.ReasonNoMention)
	case addressed != event.AddressedMention && addressed != event.AddressedCommand && look.InvocationOnly():
		return g.unasked(event.ReasonNoMention)
	case g.tooOld(m):
		return passive(event.ReasonTooOld)
	case g.looping(m, look):
		return passive(event.ReasonLoopGuard)
	case g.over:
		return passive(event.ReasonLimit)
	}
	reason := event.ReasonOpen
	switch {
	case addressed != event.AddressedNone:
		reason = string(addressed)
	case g.Policy.RequireMention:
		reason = event.ReasonFollowed
	}
	return record.Decision{Trigger: messages.TriggerRun, Reason: reason}
}

// tooOld reports whether a message is too old to trigger a run. An edit has a time of its own.
func (g gate) tooOld(m *event.Message) bool {
	at := m.SentAt
	if g.kind == event.KindEdit && m.EditedAt.After(at) {
		at = m.EditedAt
	}
	return !g.arrived.IsZero() && !at.IsZero() && g.arrived.Sub(at) > g.Policy.MaxAge
}

// follows reports whether a person continues a thread that we have answered.
func (g gate) follows(m *event.Message, look record.Look) bool {
	return g.Policy.FollowThreads && g.kind == event.KindMessage && m.FollowUp && m.Metadata.SenderType == event.Human && look.Answered()
}

func passive(reason string) record.Decision {
	return record.Decision{Trigger: messages.TriggerPassive, Reason: reason}
}

// unasked decides about a message that does not address us. With passive memory it is
// stored, else only noted.
func (g gate) unasked(reason string) record.Decision {
	if g.Policy.PassiveMemory {
		return passive(reason)
	}
	return record.Decision{Note: true, Trigger: messages.TriggerNone, Reason: event.ReasonNotAddressed}
}

// looping reports whether bots have begun as many runs in the channel as they may. Callers
// of our own API were admitted by a token, and are not counted. A platform whose messages say
// whether they are from the account's owner has no bots; there, messages that repeat our own
// posts count, because the posts may come back in another name.
func (g gate) looping(m *event.Message, look record.Look) bool {
	since, most := g.now().Add(-g.Policy.LoopGuard.Per), g.Policy.LoopGuard.Runs
	switch {
	case g.KeepMetadata:
		return false
	case m.Metadata.SenderType == event.Bot:
		return look.BotRuns(m.Channel.ID, since) >= most
	}
	return m.Metadata.IsFromMe != nil && look.Echoes(m.Content, since) >= most
}

// metadata returns the stored metadata: the adapter's and the run hints, as the contract's
// Slack example computes them.
func (g gate) metadata(m *event.Message, d record.Decision, addressed event.Addressed) []byte {
	metadata := m.Metadata
	if d.Action != nil {
		metadata.Extra = append(slices.Clip(metadata.Extra), event.Extra{Key: event.KeyAction, Value: d.Action})
		metadata.Edited()
	}
	if g.asGiven() {
		return metadata.Bytes()
	}
	metadata.Passive = new(d.Trigger != messages.TriggerRun)
	metadata.TriggerRAG = new(addressed != event.AddressedNone || !g.Policy.RequireMention)
	metadata.IncludeInMemory = new(g.Policy.PassiveMemory)
	metadata.RecipientID = ""
	if addressed != event.AddressedNone {
		metadata.RecipientID = "bot:" + g.Agent
	}
	metadata.Edited()
	return metadata.Bytes()
}

func is(flag *bool) bool { return flag != nil && *flag }
