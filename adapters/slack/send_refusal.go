package slack

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// sendError says what a failed call of the method left behind.
func sendError(method, channel string, err error) *adapters.SendError {
	failure := &adapters.SendError{Failure: adapters.Unclear} // an answer that can't be read
	var done *adapters.SendError
	var answer slack.SlackErrorResponse
	switch {
	case errors.As(err, &done):
		*failure = *done
	case errors.As(err, &answer):
		failure.Failure = refusal(method, answer.Err)
	}
	if failure.Failure == adapters.RateLimited {
		failure.RetryAfter = max(failure.RetryAfter, minRetry)
	}
	failure.Err = fmt.Errorf("%s in slack channel %s: %w", method, channel, err)
	return failure
}

// refusal says what an ok:false left behind. A code is a refusal for good, the ones
// that are not known here too: the method looked at its arguments and did nothing,
// and would do the same again.
func refusal(method, code string) adapters.SendFailure {
	if failure, known := refusalsOf[method][code]; known {
		return failure
	}
	if failure, known := refusalsOf[""][code]; known {
		return failure
	}
	return adapters.Permanent
}

// refusalsOf are the codes that are no refusal for good: what Slack itself documents as
// a passing state, or as one where "some aspect of the operation" may have
// succeeded. Those of every method stand under "".
// https://docs.slack.dev/reference/methods/chat.postMessage#errors
var refusalsOf = map[string]map[string]adapters.SendFailure{
	"": {
		"ratelimited": adapters.RateLimited, "rate_limited": adapters.RateLimited,
		"fatal_error": adapters.Unclear, "internal_error": adapters.Unclear,
		"service_unavailable": adapters.Unclear, "request_timeout": adapters.Unclear,
		// while the workspace moves
		"team_added_to_org": adapters.NotSent, "org_login_required": adapters.NotSent,
	},
	// A stream that was just ended may be streaming for a moment longer.
	"chat.update": {"streaming_state_conflict": adapters.NotSent},
	"chat.delete": {"streaming_state_conflict": adapters.NotSent},
	// What was uploaded a moment ago may not have been taken in everywhere.
	"files.completeUploadExternal": {"file_not_found": adapters.NotSent},
}

// refusedCode is the code that Slack has answered; empty for none.
func refusedCode(err error) string {
	var answer slack.SlackErrorResponse
	if errors.As(err, &answer) {
		return answer.Err
	}
	return ""
}

// isRefused says whether Slack has answered with a code of the kind.
func isRefused(err error, kind func(code string) bool) bool {
	code := refusedCode(err)
	return code != "" && kind(code)
}

// isUnavailable tells the codes of a method that this app, or this workspace, does
// not have at all.
// https://docs.slack.dev/apis/web-api#errors
func isUnavailable(code string) bool {
	switch code {
	case "unknown_method", "method_deprecated", "missing_scope", "not_allowed_token_type", "no_permission",
		"feature_not_enabled", "team_access_not_granted", "access_denied", "not_allowed":
		return true
	}
	return false
}

// permanent is a failure that no call was needed for.
func permanent(words string) *adapters.SendError {
	return &adapters.SendError{Failure: adapters.Permanent, Err: errors.New(words)}
}

// refusedFor is how long a refusal is remembered that holds for all of a workspace.
const refusedFor = time.Hour

// refusals remembers what Slack does not take here, by our own names.
type refusals struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (r *refusals) remember(what string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until == nil {
		r.until = map[string]time.Time{}
	}
	maps.DeleteFunc(r.until, func(_ string, until time.Time) bool { return now.After(until) })
	r.until[what] = now.Add(refusedFor)
}

func (r *refusals) holds(what string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until[what])
}
