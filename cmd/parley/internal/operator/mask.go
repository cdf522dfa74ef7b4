package operator

import "regexp"

// masked replaces a token in a payload.
const masked = "***"

// The secrets that platforms put into payloads: the values of keys with such a name, and texts with the form
// of a token. An escaped quote is part of a value, so no text of a person can look like a key.
var (
	secretValues = regexp.MustCompile(`(?i)("[^"\\]*(?:token|secret|password|authorization|response_url|trigger_id|webhook_url)[^"\\]*"\s*:\s*)"(?:[^"\\]|\\.)*"`)
	secretForms  = regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]+|\bxapp-[A-Za-z0-9-]+|(?i:\bBearer )[A-Za-z0-9._~+/=-]{8,}`)
)

// mask returns a payload without the tokens that its platform put into it. It stays JSON if it was.
func mask(payload string) string {
	payload = secretValues.ReplaceAllString(payload, `$1"`+masked+`"`)
	return secretForms.ReplaceAllString(payload, masked)
}
