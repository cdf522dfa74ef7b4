package call_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/internal/testapp"
	"parley/config/secret"
	"parley/ingest/event"
)

// TestErrorsHideSecrets checks every form of the secrets in errors of the server and of the
// network.
func TestErrorsHideSecrets(t *testing.T) {
	words := "no: " + testapp.Canary + " " + testapp.CanaryQuery + " " + testapp.CanaryPath + " " + testapp.CanaryWebhook
	server := testapp.Echo(t, http.StatusNotFound, fmt.Sprintf(`{"status":404,"message":"no","error":{"type":"x","message":%q}}`, words))
	a := bluebubbles.New("home", testapp.Config(server))
	_, err := a.LookupUser(t.Context(), testapp.Nora)
	checkHidden(t, err)
	_, err = bluebubbles.New("home", testapp.Config("http://127.0.0.1:1")).LookupUser(t.Context(), testapp.Nora)
	checkHidden(t, err)
	_, err = bluebubbles.New("home", testapp.Config("http://127.0.0.1:1")).Fetch(t.Context(), event.Attachment{ID: "at_1"})
	checkHidden(t, err)
	_, err = bluebubbles.New("home", testapp.Config("http://[::1]:x")).Fetch(t.Context(), event.Attachment{ID: "at_1"})
	checkHidden(t, err)
}

// TestAShortPasswordLeavesErrorsReadable checks that a password of one letter is not removed from words.
func TestAShortPasswordLeavesErrorsReadable(t *testing.T) {
	c := testapp.Config(testapp.Echo(t, http.StatusNotFound, `{"status":404,"error":{"message":"there is no helper"}}`))
	c.Password = secret.New("e")
	_, err := bluebubbles.New("home", c).LookupUser(t.Context(), testapp.Nora)
	if err == nil || !strings.Contains(err.Error(), "there is no helper") {
		t.Errorf("%v", err)
	}
}

func checkHidden(t *testing.T, err error) {
	t.Helper()
	for _, form := range []string{testapp.Canary, testapp.CanaryQuery, testapp.CanaryPath, testapp.CanaryWebhook, "password="} {
		if err == nil || strings.Contains(err.Error(), form) {
			t.Errorf("%q in the error %v", form, err)
		}
	}
}

// TestAnotherServer checks that the answer of another server names the setting.
func TestAnotherServer(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotFound} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>Welcome</html>")
		}))
		_, err := bluebubbles.New("home", testapp.Config(server.URL)).LookupUser(t.Context(), testapp.Nora)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), "bluebubbles.url") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestRedirect checks that the error of a redirect names the host and no secret of the address.
func TestRedirect(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("https://mac.example.org/x?password="+testapp.CanaryQuery, http.StatusMovedPermanently))
	defer server.Close()
	_, err := bluebubbles.New("home", testapp.Config(server.URL)).LookupUser(t.Context(), testapp.Nora)
	checkHidden(t, err)
	if !strings.Contains(err.Error(), "https://mac.example.org;") {
		t.Errorf("the error is %v", err)
	}
}
