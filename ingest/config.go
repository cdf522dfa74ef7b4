// Package ingest accepts envelopes, records them as durable events once and in order,
// and decides what each event triggers.
package ingest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/ingest/event"
)

// Policy decides which events trigger runs. Start from DefaultPolicy.
type Policy struct {
	// RequireMention limits runs in a room to messages that address us.
	RequireMention bool `yaml:"require_mention"`
	// FollowThreads lets people go on without a mention in a thread of a room that we have
	// answered.
	FollowThreads bool `yaml:"follow_threads"`
	// PassiveMemory stores messages that trigger no run.
	PassiveMemory bool `yaml:"passive_memory"`
	// BotMessages is BotsIgnored, BotsShown or BotsRun.
	BotMessages string `yaml:"bot_messages"`
	// MaxAge is the greatest age at which an arriving message still triggers a run.
	MaxAge time.Duration `yaml:"max_age"`
	// Reactions makes each reaction a message in the name of its sender. A reaction to
	// our message is a reply. Any other triggers nothing.
	Reactions bool `yaml:"reactions"`
	// AllowUsers, AllowBots and AllowChannels are the ids of the admitted people, bots and
	// channels, as the platform writes them. A nil list admits everybody; of people, only if each list of them is nil. An empty list that is
	// not nil admits nobody.
	AllowUsers []string `yaml:"allow_users"`
	// AllowRoles and AllowGroups are the roles of Discord and the user groups of Slack whose people are admitted, too.
	AllowRoles  []string `yaml:"allow_roles"`
	AllowGroups []string `yaml:"allow_groups"`
	// Strangers is the handling of a person who is on no list: StrangersIgnored or StrangersAsk.
	Strangers     string   `yaml:"strangers"`
	AllowBots     []string `yaml:"allow_bots"`
	AllowChannels []string `yaml:"allow_channels"`
	// AllowServers are the ids of the admitted servers: Discord's servers, Slack's teams. With a
	// list, a direct message without a server is admitted only from a user on AllowUsers.
	AllowServers []string `yaml:"allow_servers"`
	// Proxies are the ids of the bots that post messages again in the name of people, such as
	// PluralKit on Discord. Such a copy is a message of the person.
	Proxies []string `yaml:"proxies"`
	// AppsOfPeople are the ids of the apps whose posts with a person's token count as the person's.
	AppsOfPeople []string `yaml:"apps_of_people"`
	// Reply is where the answer to a message at the top of a channel stands: ReplyThread or ReplyChannel.
	Reply string `yaml:"reply"`
	// Mentions are those that take effect in answers: MentionsTokens, MentionsNames or MentionsNone.
	Mentions string `yaml:"mentions"`
	// LoopGuard bounds the runs that bots begin.
	LoopGuard LoopGuard `yaml:"loop_guard"`
	// FromMe says that the account owner's own messages are judged like
	// anybody's (BlueBubbles' from_me: run); otherwise they are passive.
	FromMe bool `yaml:"-"`
	// SMS is SMSIgnored, SMSShown or SMSRun (BlueBubbles' sms); empty is SMSShown if AllowUsers is
	// set, else SMSRun.
	SMS string `yaml:"-"`
}

// The handling of text messages, whose senders may claim any address.
const (
	SMSIgnored = "ignore"  // they are not stored
	SMSShown   = "context" // they are stored and shown as context, and trigger no run
	SMSRun     = "run"     // they are judged like other messages, but answer no approval
)

// sms returns the handling of text messages.
func (p Policy) sms() string {
	switch {
	case p.SMS != "":
		return p.SMS
	case !p.Everybody():
		return SMSShown
	}
	return SMSRun
}

// The places of the answer to a message at the top of a channel, on a platform with threads under messages.
const (
	ReplyThread  = "thread"  // in the thread under the message
	ReplyChannel = "channel" // in the channel, beside the message
)

// The mentions that take effect in answers.
const (
	MentionsTokens = "tokens" // the tokens of the agent's input
	MentionsNames  = "names"  // also @Name of the one person of that name in the input
	MentionsNone   = "none"
)

// The handling of messages of bots.
const (
	BotsIgnored = "ignore"  // they are not stored, nor shown in quotations
	BotsShown   = "context" // they are stored and shown as context, and trigger no run
	BotsRun     = "run"     // they are judged like people's, and bounded by the loop guard
)

// The handling of people whom no list admits.
const (
	StrangersIgnored = "ignore"
	StrangersAsk     = "ask" // the first message asks the approvers of the channel's agent whether the person may talk to it
)

// LoopGuard bounds the runs that bots begin: at most Runs in one channel within Per.
type LoopGuard struct {
	Runs int           `yaml:"runs"`
	Per  time.Duration `yaml:"per"`
}

// DefaultPolicy returns the defaults of the configuration.
func DefaultPolicy() Policy {
	return Policy{
		RequireMention: true,
		PassiveMemory:  true,
		BotMessages:    BotsShown,
		MaxAge:         time.Hour,
		Reply:          ReplyThread,
		Mentions:       MentionsTokens,
		Strangers:      StrangersIgnored,
		LoopGuard:      LoopGuard{Runs: 10, Per: 5 * time.Minute},
	}
}

// NotApp, NotChannel, NotUser, NotBot and NotServer are the words of a fault of a string that is no id.
const (
	NotApp     = "must be an app's id, such as A0123456789, not a name"
	NotServer  = "must be the id of a server or team, not a name: names can be taken by others"
	NotBot     = "must be a bot's id, not a name: names can be taken by others"
	NotChannel = "must be a channel's id, not a name: names can be taken by others"
	NotUser    = "must be a user's id, not a name: names can be taken by others"
)

// Forms report whether a string has the form of the id of a user or a bot, of a channel, of a server, of an app that posts with
// people's tokens, of a role, or of a user group on the platform. A nil one of the last three says that there are none. Any other nil one means that any string may be an id. NoServers says that the platform has
// no servers, NoThreads that no answer there is in a thread under its question, and NoAsking that the bot can ask nobody there by buttons in
// direct messages.
type Forms struct {
	User, Channel, Server, App, Role, Group func(id string) bool
	NoServers, NoThreads, NoAsking          bool
}

// Validate returns every fault, by key, without any value.
func (p Policy) Validate(forms Forms) event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(slices.Contains([]string{BotsIgnored, BotsShown, BotsRun}, p.BotMessages), "bot_messages", "must be ignore, context or run")
	faults.Check(p.MaxAge > 0, "max_age", "must be more than 0s")
	faults.Check(p.LoopGuard.Runs > 0, "loop_guard.runs", "must be at least 1")
	faults.Check(p.LoopGuard.Per > 0, "loop_guard.per", "must be more than 0s")
	faults.Check(p.Reply == ReplyThread || p.Reply == ReplyChannel, "reply", "must be thread or channel")
	faults.Check(slices.Contains([]string{MentionsTokens, MentionsNames, MentionsNone}, p.Mentions), "mentions", "must be tokens, names or none")
	faults.Check(p.Reply != ReplyChannel || !forms.NoThreads, "reply", "has no effect on this platform, whose answers are in no thread under the question: remove it")
	faults.Check(p.Strangers == StrangersIgnored || p.Strangers == StrangersAsk, "strangers", "must be ignore or ask")
	faults.Check(p.Strangers != StrangersAsk || !forms.NoAsking, "strangers", "ask has no effect on this platform, where the bot can ask nobody by buttons in direct messages: remove it")
	for i, id := range p.AllowUsers {
		faults.Check(IsID(id, forms.User), fmt.Sprintf("allow_users[%d]", i), NotUser)
	}
	for i, id := range p.AllowBots {
		faults.Check(IsID(id, forms.User), fmt.Sprintf("allow_bots[%d]", i), NotBot)
	}
	for i, id := range p.Proxies {
		faults.Check(IsID(id, forms.User), fmt.Sprintf("proxies[%d]", i), NotBot)
	}
	inGroups := func(key, what string, list []string, hasForm func(id string) bool) {
		faults.Check(hasForm != nil || list == nil, key, "has no effect on a platform without "+what+": remove it")
		for i, id := range list {
			faults.Check(hasForm == nil || hasForm(id), fmt.Sprintf("%s[%d]", key, i), "must be an id, as the platform writes those of "+what+", not a name: names can be taken by others")
		}
	}
	inGroups("allow_roles", "roles", p.AllowRoles, forms.Role)
	inGroups("allow_groups", "user groups", p.AllowGroups, forms.Group)
	faults.Check(forms.App != nil || p.AppsOfPeople == nil, "apps_of_people", "has no effect on this platform: remove it")
	for i, id := range p.AppsOfPeople {
		faults.Check(forms.App == nil || forms.App(id), fmt.Sprintf("apps_of_people[%d]", i), NotApp)
	}
	faults.Check(!forms.NoServers || p.AllowServers == nil, "allow_servers", "has no effect on a platform without servers: remove it")
	for i, id := range p.AllowServers {
		faults.Check(forms.NoServers || IsID(id, forms.Server), fmt.Sprintf("allow_servers[%d]", i), NotServer)
	}
	for i, id := range p.AllowChannels {
		faults.Check(IsID(id, forms.Channel), fmt.Sprintf("allow_channels[%d]", i), NotChannel)
	}
	return faults
}

// Known returns the policy with the entries that events have for the listed people and places. A nil list stays nil.
func (p Policy) Known(person, place func(configured string) string) Policy {
	known := func(list *[]string, id func(configured string) string) {
		*list = slices.Clone(*list)
		for i, configured := range *list {
			(*list)[i] = id(configured)
		}
	}
	known(&p.AllowUsers, person)
	known(&p.AllowBots, person)
	known(&p.Proxies, person)
	known(&p.AllowChannels, place)
	return p
}

// Everybody reports whether no list limits the people.
func (p Policy) Everybody() bool {
	return p.AllowUsers == nil && p.AllowRoles == nil && p.AllowGroups == nil
}

// RolePrefix and GroupPrefix begin an approver that is a role or a user group.
const RolePrefix, GroupPrefix = "role:", "group:"

// GroupsIn returns the ids of the roles and user groups among approvers.
func GroupsIn(approvers []string) (ids []string) {
	for _, entry := range approvers {
		if id, ok := groupIn(entry); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// UsersIn returns the platform's own users among approvers. The bot can write to them. Roles and user groups get no direct message, and
// an id with a namespace is of elsewhere.
func UsersIn(approvers []string) (ids []string) {
	for _, entry := range approvers {
		if !strings.Contains(entry, ":") {
			ids = append(ids, entry)
		}
	}
	return ids
}

func groupIn(approver string) (id string, ok bool) {
	if id, ok = strings.CutPrefix(approver, RolePrefix); !ok {
		id, ok = strings.CutPrefix(approver, GroupPrefix)
	}
	return id, ok
}

// IsID reports whether a string may be a platform's id: it is no name and no mention. A nil hasForm
// means that any other string may be an id.
func IsID(s string, hasForm func(id string) bool) bool {
	return s != "" && strings.TrimSpace(s) == s && !strings.ContainsAny(s[:1], "#@<") && (hasForm == nil || hasForm(s))
}
