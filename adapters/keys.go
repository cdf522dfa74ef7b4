package adapters

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest returns the SHA-256 of data in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// BodyKey returns the dedupe key of a payload that has no better one.
func BodyKey(body []byte) string { return "body:" + Digest(body) }
