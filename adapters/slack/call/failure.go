package call

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// SendError returns the failure of a call of the method, with the call's possible
// effect. If Slack refuses our token, it sets TokenRefused.
func (c *Client) SendError(method, channel string, err error) *adapters.SendError {
	failure := &adapters.SendError{Failure: adapters.Unclear} // for an answer that can't be decoded
	var done *adapters.SendError
	var answer slack.SlackErrorResponse
	switch {
	case errors.As(err, &done):
		*failure = *done
	case errors.As(err, &answer):
		failure.Failure, failure.Scope, failure.TooLong = Refusal(method, answer.Err), scopeOf(method), answer.Err == tooLong
		if _, credentials := operatorHints["bot_token"][answer.Err]; credentials {
			c.TokenRefused.Set()
		}
	}
	if failure.Failure == adapters.RateLimited {
		failure.RetryAfter = max(failure.RetryAfter, minRetry)
	}
	failure.Err = fmt.Errorf("%s in slack channel %s: %w", method, channel, err)
	return failure
}

// tooLong is Slack's code for a text that is too long, in characters that Slack counts after a conversion of its own.
// https://docs.slack.dev/reference/methods/chat.postMessage#errors
const tooLong = "msg_too_long"

// Refusal returns the kind of failure of an answer with ok:false. Every code without an
// entry in refusalsOf, known or not, is Permanent: the method checked its arguments,
// had no effect, and would answer the same again.
func Refusal(method, code string) adapters.SendFailure {
	if failure, known := refusalsOf[method][code]; known {
		return failure
	}
	if failure, known := refusalsOf[""][code]; known {
		return failure
	}
	return adapters.Permanent
}

// refusalsOf are the codes that are not permanent. Slack documents them as a passing
// state, or as a state in which "some aspect of the operation" may have succeeded. The
// codes of all methods are under "".
// https://docs.slack.dev/reference/methods/chat.postMessage#errors
var refusalsOf = map[string]map[string]adapters.SendFailure{
	"": {
		"ratelimited": adapters.RateLimited, "rate_limited": adapters.RateLimited,
		"fatal_error": adapters.Unclear, "internal_error": adapters.Unclear,
		"service_unavailable": adapters.Unclear, "request_timeout": adapters.Unclear,
		// the call succeeds once the operator has set a valid token
		"invalid_auth": adapters.NotSent, "not_authed": adapters.NotSent, "token_expired": adapters.NotSent,
		"token_revoked": adapters.NotSent, "account_inactive": adapters.NotSent,
		// while the workspace moves to an organisation
		"team_added_to_org": adapters.NotSent, "org_login_required": adapters.NotSent,
	},
	// A stream that was just stopped may count as open for a moment longer.
	"chat.update": {"streaming_state_conflict": adapters.NotSent},
	"chat.delete": {"streaming_state_conflict": adapters.NotSent},
	// A file that was just uploaded may not be known to all of Slack's servers yet.
	"files.completeUploadExternal": {"file_not_found": adapters.NotSent},
}

// unavailable are the codes of a method that is not available to this app or workspace at all.
// https://docs.slack.dev/apis/web-api#errors
var unavailable = []string{
	"unknown_method", "method_deprecated", "missing_scope", "not_allowed_token_type", "no_permission",
	"feature_not_enabled", "team_access_not_granted", "access_denied", "not_allowed",
}

// IsUnavailable reports whether Slack has refused a call because its method is not available to this app
// or workspace at all.
func IsUnavailable(err error) bool { return slices.Contains(unavailable, Code(err)) }

// refusedFor is the time for which a refusal of a whole workspace is remembered.
const refusedFor = time.Hour

// Remember notes that Slack refuses a feature in this workspace. Features have Parley's
// names for them.
func (c *Client) Remember(feature string) { c.refusals.rest(feature, c.Now().Add(refusedFor)) }

// Refuses reports whether Slack has refused a feature lately.
func (c *Client) Refuses(feature string) bool { return c.refusals.left(feature, c.Now()) > 0 }
