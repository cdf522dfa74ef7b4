package live

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"parley/adapters/slack/payload"
)

// maxSkew bounds the difference between a signature's time and ours, in both
// directions. An older call may be a replay.
// https://docs.slack.dev/authentication/verifying-requests-from-slack
const maxSkew = 5 * time.Minute

// The headers of a signed call.
const (
	timestampHeader = "X-Slack-Request-Timestamp"
	signatureHeader = "X-Slack-Signature"
)

// verifyHeader returns the reason why the headers show that Slack did not send a call now,
// or an empty string.
func (rc *Receiver) verifyHeader(header http.Header) (reason string) {
	stamp := header.Get(timestampHeader)
	if stamp == "" || header.Get(signatureHeader) == "" {
		return "no-signature"
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "bad-timestamp"
	}
	if rc.client.Now().Sub(time.Unix(seconds, 0)).Abs() > maxSkew {
		return "stale-timestamp"
	}
	return ""
}

// verifyBody returns the reason why Slack did not provably send the body, or an empty
// string. The signature covers the time and the raw bytes of the body. A workspace without a secret takes
// as long as one with another secret.
func (rc *Receiver) verifyBody(header http.Header, body []byte) (reason string) {
	mac := hmac.New(sha256.New, []byte(rc.settings.SigningSecret.Reveal()))
	mac.Write([]byte("v0:" + header.Get(timestampHeader) + ":"))
	mac.Write(body)
	want := "v0=" + hex.EncodeToString(mac.Sum(nil))
	signed := hmac.Equal([]byte(header.Get(signatureHeader)), []byte(want))
	switch {
	case rc.settings.SigningSecret.IsZero():
		return "no-signing-secret" // everybody can sign with an empty key
	case !signed:
		return "bad-signature"
	}
	return ""
}

// decodeForm converts the forms of interactions and commands to JSON. An interaction is
// the JSON in its payload field. A command gets the shape that it has in Socket Mode,
// {"type":"slash_commands","payload":{…}}, with every field as Slack sent it. A field
// that occurs more than once becomes a list of its values. decodeForm returns any other
// body unchanged. A body that begins with { is JSON, whatever its type says, because the
// signature does not cover the type.
// https://docs.slack.dev/interactivity
func decodeForm(header http.Header, body []byte) []byte {
	if kind, _, _ := mime.ParseMediaType(header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" || payload.IsObject(body) {
		return body
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return body
	}
	if form.Has("payload") {
		return []byte(form.Get("payload"))
	}
	fields := make(map[string]any, len(form))
	for name, values := range form {
		fields[name] = values
		if len(values) == 1 {
			fields[name] = values[0]
		}
	}
	command, err := json.Marshal(map[string]any{"type": "slash_commands", "payload": fields})
	if err != nil {
		return body
	}
	return command
}
