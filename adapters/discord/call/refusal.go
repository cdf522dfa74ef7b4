package call

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/httpcall"
)

// statusError is an answer that refuses a call.
type statusError struct {
	status, code int
	text         string
}

// Error returns the status and Discord's code and message.
func (e *statusError) Error() string {
	return fmt.Sprintf("discord answered %d %s (code %d)", e.status, e.text, e.code)
}

// callError returns an error of discordgo as an *adapters.SendError. An answer with a status of
// 400 or more has had no effect.
func callError(err error) *adapters.SendError {
	var done *adapters.SendError
	var refused *discordgo.RESTError
	switch {
	case errors.As(err, &done): // the address of an answer to an interaction contains a token
		return &adapters.SendError{Failure: done.Failure, RetryAfter: done.RetryAfter, Scope: done.Scope, Err: httpcall.WithoutURL(done.Err)}
	case !errors.As(err, &refused):
		return &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("discord's answer cannot be read")}
	case refused.Message == nil:
		return proxyError(refused.Response)
	}
	status := &statusError{refused.Response.StatusCode, refused.Message.Code, refused.Message.Message}
	failure := &adapters.SendError{Failure: adapters.Permanent, Err: status}
	if status.status == http.StatusUnauthorized && status.code != discordgo.ErrCodeInvalidWebhookTokenProvided {
		failure.Failure = adapters.NotSent // the call succeeds once the token is right
	}
	return failure
}

// otherServer says that an answer does not come from Discord's API.
const otherServer = "this is no answer of Discord's API; set discord.api_url to its address, or let the proxy on the way pass the call"

// proxyError returns the error of an answer without Discord's error object: a proxy before Discord
// has refused the call, which succeeds once the proxy lets it pass. That is no refusal of Discord's.
func proxyError(response *http.Response) *adapters.SendError {
	failure := &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("discord answered %s: %s", response.Status, otherServer)}
	if response.StatusCode == http.StatusRequestEntityTooLarge {
		failure.Failure = adapters.Permanent
	}
	return failure
}

// refusal returns the answer that refused a call; a zero one if err is not a refusal.
func refusal(err error) statusError {
	var refused *statusError
	if errors.As(err, &refused) {
		return *refused
	}
	return statusError{}
}

// Code returns the code of a refused call; 0 if err is not a refusal.
func Code(err error) int { return refusal(err).code }

// Status returns the status of a refused call; 0 if err is not a refusal.
func Status(err error) int { return refusal(err).status }

// IsForbidden reports whether Discord has refused a call because the bot does not see the channel, or
// may not do that there.
func IsForbidden(err error) bool {
	switch Code(err) {
	case discordgo.ErrCodeMissingAccess, discordgo.ErrCodeMissingPermissions, discordgo.ErrCodeUnknownChannel:
		return true
	}
	return false
}

// WithAction adds the attempted action to an error of a call.
func WithAction(action string, err error) error {
	var failure *adapters.SendError
	if !errors.As(err, &failure) {
		return &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("%s: %w", action, err)}
	}
	described := *failure
	described.Err = fmt.Errorf("%s: %w", action, failure.Err)
	return &described
}

const (
	// CheckToken tells the operator what to do if Discord refuses the token.
	CheckToken = "set discord.token to the bot's token, from the page Bot of the application in Discord's developer portal"
	// AllowContent tells the operator what to do if the bot may not read the content of messages.
	AllowContent = "turn on Message Content Intent under Privileged Gateway Intents, on the page Bot of the application in Discord's developer portal"
)

// MarkRefused marks a refusal of the token, which only the operator can fix.
func MarkRefused(err error) error {
	if Status(err) == http.StatusUnauthorized {
		return &adapters.RefusedError{Err: err, Hint: CheckToken}
	}
	return err
}
