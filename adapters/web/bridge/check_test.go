package bridge_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/web/bridge"
	"parley/config/secret"
	"parley/ingest/card"
)

// TestConfigFaults checks that each fault is named by its key, and that none has a configured value.
func TestConfigFaults(t *testing.T) {
	c := bridge.Config{
		Token: secret.New("canary-short"), Deliver: bridge.Deliver{URL: "http://canary:secret@127.0.0.1", Secret: secret.New("canary")},
		Format: "canary", Buttons: true, PostRate: -1,
	}
	faults := c.Validate().Error()
	for _, key := range []string{"token", "deliver.url", "deliver.secret", "format", "buttons", "post_rate", "timeout"} {
		if !strings.Contains("; "+faults, "; "+key+": ") {
			t.Errorf("%s is no fault: %s", key, faults)
		}
	}
	if strings.Contains(faults, "canary") {
		t.Error(faults)
	}
}

// TestCheck checks what an operator reads about a program that answers a request with each status.
func TestCheck(t *testing.T) {
	for status, key := range map[int]string{
		http.StatusOK: "", http.StatusNoContent: "", http.StatusUnauthorized: "deliver.secret", http.StatusForbidden: "deliver.secret",
		http.StatusNotFound: "deliver.url", http.StatusFound: "deliver.url", http.StatusBadRequest: "deliver.url", http.StatusBadGateway: "error",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
		}))
		c := bridge.DefaultConfig()
		c.Token, c.Deliver = secret.New(token), bridge.Deliver{URL: server.URL, Secret: secret.New(signer)}
		found, err := bridge.New("irc", c).(adapters.Checker).Check(t.Context(), adapters.Wants{})
		server.Close()
		got := ""
		switch {
		case err != nil:
			got = "error"
		case len(found) > 0:
			got = found[0].Key
		}
		if got != key {
			t.Errorf("%d: %q, want %q", status, got, key)
		}
	}
}

// TestCards checks that the content of a card's post says what the card does.
func TestCards(t *testing.T) {
	p := newProgram(t)
	sender := bridge.New("irc", p.settings())
	posts := sender.(adapters.CardSender).FormatCard(card.View{Parts: []card.Part{
		{Kind: card.KindTitle, Text: "Room 7"}, {Kind: card.KindButtons, Buttons: []card.Press{{ID: "parley-card-1", Label: "Book it"}}},
	}})
	if len(posts) != 1 || !strings.Contains(posts[0].Text, "Room 7") || len(posts[0].Card.Parts) != 2 {
		t.Fatalf("%+v", posts)
	}
	post := adapters.Post{Key: "k1", To: adapters.Address{Channel: "#garden"}, Text: posts[0].Text, Card: &posts[0].Card}
	if _, err := sender.(adapters.Sender).Send(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := string(p.asked[0].Card); !strings.Contains(got, `"kind":"buttons","buttons":[{"id":"parley-card-1","label":"Book it"`) {
		t.Errorf("the card is %s", got)
	}
}

// TestAddressesEndNoLine checks that no id of a channel can end a line of the program's protocol.
func TestAddressesEndNoLine(t *testing.T) {
	platform := bridge.Platform()
	c := bridge.DefaultConfig()
	sender := platform.New("irc", &c).(adapters.Sender)
	for _, channel := range []string{"#garden\r\nQUIT", "a\x00b", ""} {
		if to, err := sender.Address(platform.Conversation("irc", channel), ""); err == nil {
			t.Errorf("%q is %+v", channel, to)
		}
	}
	for _, channel := range []string{"#garden", "a:b/c?d e%20", "@nora:example.org"} {
		if to, err := sender.Address(platform.Conversation("irc", channel), ""); err != nil || to.Channel != channel {
			t.Errorf("%q is %+v, %v", channel, to, err)
		}
	}
}
