package operator

import (
	"parley/ingest/event"
)

// reason explains why a message was treated as it was.
type reason struct {
	// words tell the rule.
	words string
	// keys are the settings that decided, without the platform's name for those that begin with a dot.
	keys []string
	// change tells which key to set for another outcome; empty if no setting changes it.
	change string
}

// reasons explain every reason of the pipeline.
var reasons = map[string]reason{
	event.ReasonMention:  {"the message mentions the bot", []string{"policy.require_mention"}, ""},
	event.ReasonDirect:   {"the message is in a direct conversation with the bot", []string{"policy.require_mention"}, ""},
	event.ReasonReply:    {"the message answers one of the bot", []string{"policy.require_mention"}, ""},
	event.ReasonOpen:     {"no mention is needed here", []string{"policy.require_mention"}, "policy.require_mention: true"},
	event.ReasonFollowed: {"the message continues a thread that the bot has answered", []string{"policy.follow_threads", "policy.require_mention"}, "policy.follow_threads: false"},
	event.ReasonCommand:  {"the message is a command, or a program asked for its run", []string{"commands.prefix"}, ""},

	event.ReasonNoMention: {"the bot answers a message in a channel only if it mentions or answers the bot, and this one does not", []string{"policy.require_mention", "policy.follow_threads"},
		"policy.require_mention: false, or policy.follow_threads: true for threads that the bot has answered"},
	event.ReasonPassive: {"its sender asked for no answer (passive: true)", nil, ""},
	event.ReasonNotForUs: {"its recipient_id names another agent than those of the workspace", []string{"agent"},
		"agent, or a channels entry with that agent"},
	event.ReasonTooOld: {"the message was older than the greatest age of a question when it arrived", []string{"policy.max_age"},
		"policy.max_age; for messages that were missed, catch_up.max_age"},
	event.ReasonLoopGuard: {"bots have begun as many runs in the channel as they may", []string{"policy.loop_guard.runs", "policy.loop_guard.per"},
		"policy.loop_guard: {runs, per}"},
	event.ReasonLimit: {"as many runs have begun as the limits allow, or the tokens of the day are used up",
		[]string{"limits.runs_per_user", "limits.runs_per_workspace", "limits.tokens_per_user", "limits.tokens_per_workspace"},
		"limits: runs_per_user, runs_per_workspace, tokens_per_user or tokens_per_workspace"},
	event.ReasonFromMe: {"the owner of the account wrote it", []string{".from_me"}, "bluebubbles.from_me: run"},
	event.ReasonEmpty:  {"it has no words and no files", nil, ""},
	event.ReasonSMS: {"it is a text message, whose sender can claim any address", []string{".sms", "policy.allow_users"},
		"bluebubbles.sms: run"},
	event.ReasonAction:     {"somebody pressed a button", nil, ""},
	event.ReasonWorkstream: {"it is Parley's own, about a workstream", []string{"agents[].workstreams.agents"}, ""},
	event.ReasonSchedule:   {"a schedule asked", []string{"schedules"}, ""},
	event.ReasonNoAnswer:   {"it does not answer the open question of the agent, or its sender may not answer it", []string{"agents[].approvers"}, "approvers of the agent"},

	event.ReasonOwnMessage: {"the bot itself wrote it", nil, ""},
	event.ReasonBotMessage: {"a bot wrote it", []string{"policy.bot_messages", "policy.allow_bots"},
		"policy.bot_messages: run, and policy.allow_bots if it is a list"},
	event.ReasonNotAddressed: {"the message does not address the bot, and other messages are not stored", []string{"policy.passive_memory", "policy.require_mention"},
		"policy.passive_memory: true to store it, policy.require_mention: false to answer it"},
	event.ReasonPaused:         {"an operator had paused the agent there", nil, ""},
	event.ReasonUserRefused:    {"its sender is not on the list of admitted users", []string{"policy.allow_users", "policy.allow_roles", "policy.allow_groups", "policy.allow_bots"}, "policy.allow_users: add the sender's id; policy.strangers: ask lets approvers decide"},
	event.ReasonStrangerAsked:  {"its sender is not on the list of admitted users, and the approvers of the agent are asked about the sender", []string{"policy.strangers", "policy.allow_users", "agents[].approvers"}, "policy.allow_users: add the sender's id; or parley people admit"},
	event.ReasonStrangerWaits:  {"its sender is not on the list of admitted users, and the approvers have not answered about the sender yet", []string{"policy.strangers", "policy.allow_users", "agents[].approvers"}, "policy.allow_users: add the sender's id; or parley people admit"},
	event.ReasonStrangerNo:     {"its sender is not on the list of admitted users, and an approver or an operator has refused the sender", []string{"policy.strangers", "policy.allow_users"}, "policy.allow_users: add the sender's id; or parley people admit, or parley people ask"},
	event.ReasonStrangersFull:  {"its sender is not on the list of admitted users, and the approvers have as many open questions about strangers as they may", []string{"policy.strangers", "policy.allow_users"}, "policy.allow_users: add the sender's id"},
	event.ReasonServerRefused:  {"it is not from an admitted server", []string{"policy.allow_servers"}, "policy.allow_servers: add the server's id"},
	event.ReasonChannelRefused: {"its channel is not on the list of admitted channels", []string{"policy.allow_channels"}, "policy.allow_channels: add the channel's id"},
	event.ReasonNoChange:       {"the change has no effect on the text", nil, ""},
	event.ReasonDeleted:        {"the message was deleted before", nil, ""},
	event.ReasonForgotten:      {"its words have left the store: an operator has forgotten its author, or it is older than messages may be", []string{"retention.messages"}, ""},
	event.ReasonUnknownMessage: {"it changes a message that never arrived", []string{"catch_up.max_age"}, ""},
	event.ReasonMember:         {"somebody joined or left", nil, ""},
	event.ReasonOtherWorkspace: {"it is of another team or another app than the token of the workspace", []string{".bot_token"}, "the token of the workspace"},
	event.ReasonSystemMessage:  {"the platform itself wrote it", nil, ""},
	event.ReasonNotAnEvent:     {"it is no event that the bot knows", nil, ""},
	event.ReasonInteraction:    {"it is a form, or an interaction without a message", nil, ""},
	event.ReasonGroupEvent:     {"the name or the picture of the chat was changed", nil, ""},
}
