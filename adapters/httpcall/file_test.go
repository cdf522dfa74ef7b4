package httpcall

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"parley/adapters"
)

// TestARefusedRedirectIsPermanent checks that a file whose address redirects to a sign-in page
// elsewhere is not fetched again, and that a broken connection may pass.
func TestARefusedRedirectIsPermanent(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("https://sign-in.example/", http.StatusFound))
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := NewFileClient(NewTransport(), base, "no access")
	check := func(want adapters.SendFailure) {
		_, err := Open(t.Context(), client, new(Meter), server.URL, "")
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != want {
			t.Errorf("%v, want the failure %v", err, want)
		}
	}
	check(adapters.Permanent)
	server.Close()
	check(adapters.Unclear)
}
