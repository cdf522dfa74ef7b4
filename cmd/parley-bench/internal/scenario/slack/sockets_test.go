package slack

import (
	"net/http"
	"net/url"
	"testing"

	"parley/adapters/slack/slacktest"
)

func TestDisconnectsRefuseNothingWithoutASocket(t *testing.T) {
	api, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	for _, kind := range disconnects() {
		if n := kind.do(api); n != 0 {
			t.Errorf("%s hit %d sockets, want 0", kind.name, n)
		}
	}
	response, err := http.PostForm(api.URL()+openMethod, url.Values{"token": {slacktest.AppToken}})
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusOK {
		t.Errorf("status %d", response.StatusCode)
	}
}
