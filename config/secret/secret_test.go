package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"parley/config/secret"
)

const canary = "xoxb-canary-7f3a"

// TestNothingPrintsASecret tries every way that a value reaches a log, an error
// or a document, inside a struct and behind a pointer too.
func TestNothingPrintsASecret(t *testing.T) {
	value := secret.New(canary)
	holder := struct {
		Token   secret.Value
		Pointer *secret.Value
		hidden  secret.Value
	}{value, &value, value}

	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", value)
		fmt.Fprintf(&out, verb+"\n", holder)
	}
	fmt.Fprintln(&out, errors.Join(fmt.Errorf("post with %v", value), fmt.Errorf("%w", fmt.Errorf("%s", holder))))
	slog.New(slog.NewJSONHandler(&out, nil)).Info("start", "token", value, "all", holder)
	slog.New(slog.NewTextHandler(&out, nil)).Info("start", "token", value, "all", holder)
	if err := json.NewEncoder(&out).Encode(holder); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) {
		t.Errorf("the secret was printed:\n%s", text)
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		secret, given string
		want          bool
	}{
		{canary, canary, true},
		{canary, canary + " ", false},
		{canary, "", false},
		{"", "", false},
	} {
		if got := secret.New(c.secret).Equal(c.given); got != c.want {
			t.Errorf("New(%q).Equal(%q) = %v, want %v", c.secret, c.given, got, c.want)
		}
	}
}

func TestRevealGivesWhatWasRead(t *testing.T) {
	var value secret.Value
	if err := value.UnmarshalText([]byte(canary)); err != nil {
		t.Fatal(err)
	}
	if value.Reveal() != canary || value.IsZero() {
		t.Errorf("Reveal() = %q, IsZero() = %v", value.Reveal(), value.IsZero())
	}
}

// TestALineEndIsRefused checks the secrets that an environment file with the line ends of Windows,
// a block of YAML and a careless copy give. Such a secret fails only when it is used, and mostly without a word.
func TestALineEndIsRefused(t *testing.T) {
	for _, text := range []string{canary + "\r", canary + "\n", "\x00" + canary, canary + " ", "\u00a0" + canary} {
		value := secret.New("before")
		if err := value.UnmarshalText([]byte(text)); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestIsWeak: the length counts characters, not bytes.
func TestIsWeak(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "éaaa": true, "éaaaa": false, "aaaaaaaaaaaa": true, "ééééééé": true, "aaaaab": false, "ababab": true, "abababa": true, "abcab": false, "abcdabcd": true, "abcdeabcde": false, "ééaééaé": true, "\xff\xff\xff\xff\xff": true,
	} {
		if got := secret.New(text).IsWeak(5); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
