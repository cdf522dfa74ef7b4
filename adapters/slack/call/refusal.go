package call

import (
	"cmp"
	"errors"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// Code returns the code of Slack's refusal; empty if err is not a refusal.
func Code(err error) string {
	if answer, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return answer.Err
	}
	return ""
}

// operatorHints are the operator's hints for refusals that only the operator can fix,
// by Slack's code. They are grouped by the setting or the calls that Slack refuses.
// https://docs.slack.dev/reference/methods/auth.test#errors
// https://docs.slack.dev/reference/methods/apps.connections.open#errors
// https://docs.slack.dev/reference/methods/conversations.history#errors
var operatorHints = map[string]map[string]string{
	"bot_token": {
		"invalid_auth":           checkBotToken,
		"not_authed":             checkBotToken,
		"token_expired":          checkBotToken,
		"not_allowed_token_type": "bot_token is a token of another kind: it is the Bot User OAuth Token, which begins with xoxb-",
		"token_revoked":          installAgain,
		"account_inactive":       installAgain,
	},
	"app_token": {
		"invalid_auth":           checkAppToken,
		"not_authed":             checkAppToken,
		"not_allowed_token_type": checkAppToken,
		"token_revoked":          newAppToken,
		"token_expired":          newAppToken,
		"account_inactive":       newAppToken,
		"missing_scope":          "app_token lacks the scope connections:write: generate an App-Level Token that has it, in the app's Basic Information",
	},
	"history": {
		"missing_scope":     "give the app the scopes channels, groups, im and mpim, each with :read and :history, and install it again",
		"not_in_channel":    inviteBot,
		"channel_not_found": inviteBot,
	},
}

const (
	checkBotToken = "check bot_token: it is the Bot User OAuth Token, which begins with xoxb-"
	installAgain  = "install the app in the workspace again, and set bot_token to its new token"
	checkAppToken = "check app_token: it is an App-Level Token, from the app's Basic Information, which begins with xapp-"
	newAppToken   = "generate an App-Level Token with the scope connections:write in the app's Basic Information, and set app_token to it"
	inviteBot     = "invite the bot to the channel, if it should take part there"
)

// MarkRefused marks a refusal of a token that only the operator can fix. setting is the
// token's key in the configuration: bot_token or app_token.
func MarkRefused(setting string, err error) error {
	hint, known := operatorHints[setting][Code(err)]
	if !known {
		return err
	}
	return &adapters.RefusedError{Err: err, Hint: hint}
}

// markRefusedHistory marks a refusal of a history call that only the operator can fix.
// It does not mark a refusal of our credentials, because the messages can be read again
// with new credentials.
func markRefusedHistory(method string, err error) error {
	code := Code(err)
	_, credentials := operatorHints["bot_token"][code]
	if code == "" || credentials || Refusal(method, code) != adapters.Permanent {
		return err
	}
	hint := cmp.Or(operatorHints["history"][code], "see https://docs.slack.dev/reference/methods/"+method+"#errors")
	return &adapters.RefusedError{Err: err, Hint: hint}
}
