// Package secret holds configuration values that must never be printed.
package secret

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"unicode"
)

const mask = "[secret]"

// Value is a token, key or password. Every way of printing or marshalling it gives a
// mask. Only Reveal returns the text. The zero value is an unset secret.
//
// The text is behind a pointer. fmt can't call the methods of a value in an unexported
// field, and a pointer leaves it only an address to print.
type Value struct{ text *string }

// New makes a secret of a configured text.
func New(text string) Value { return Value{&text} }

// Reveal returns the text, for the one call that needs it.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// IsZero reports whether the secret is unset.
func (v Value) IsZero() bool { return v.Reveal() == "" }

// MinLength is the least number of characters of a secret that its owner chooses for Parley.
// Callers can guess a shorter one.
const MinLength = 24

// IsWeak reports whether callers can guess the secret, as far as its form shows: it has fewer characters
// than least, or repeats a pattern of fewer, such as ababab.
func (v Value) IsWeak(least int) bool {
	text := []rune(v.Reveal())
	if len(text) < least {
		return true
	}
	for size := 1; size < least && 2*size <= len(text); size++ {
		if slices.Equal(text[:len(text)-size], text[size:]) {
			return true
		}
	}
	return false
}

// Equal compares in time that does not depend on either text or its length. An
// unset secret equals nothing.
func (v Value) Equal(text string) bool {
	want, got := sha256.Sum256([]byte(v.Reveal())), sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1 && !v.IsZero()
}

// Format gives the mask for every verb.
func (v Value) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// LogValue gives the mask to slog.
func (v Value) LogValue() slog.Value { return slog.StringValue(mask) }

// MarshalText gives the mask, to JSON and YAML alike.
func (v Value) MarshalText() ([]byte, error) { return []byte(mask), nil }

// UnmarshalText reads the secret from a configuration value. It refuses control characters, and
// white space around the secret: no secret has them, and they easily come with one from a file, the
// environment or a page.
func (v *Value) UnmarshalText(text []byte) error {
	if bytes.ContainsFunc(text, unicode.IsControl) {
		return errors.New("contains a line end or another control character: remove it")
	}
	if len(bytes.TrimSpace(text)) < len(text) {
		return errors.New("begins or ends with white space: remove it")
	}
	*v = New(string(text))
	return nil
}
