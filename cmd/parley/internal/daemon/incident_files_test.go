package daemon_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIncidentFiles: the folder of attachments cannot be written. A message with a file is refused with these words,
// the store counts as well, and a message without goes on. After the repair, the message is taken once.
func TestIncidentFiles(t *testing.T) {
	t.Parallel()
	h := open(t, plan{}).echoes()
	dir := filepath.Join(h.dir, "data/attachments")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a file in place of the folder")
	body := `{"thread_id":"` + thread + `","client_message_id":"1","content":"see this","attachments":[{"name":"cat.png","mime_type":"image/png","data":"` +
		base64.StdEncoding.EncodeToString([]byte(catPNG)) + `"}]}`
	state := func(want string) {
		t.Helper()
		got := h.get("/readyz")
		if ready := decode[struct{ Store, Attachments string }](t, got.body); got.status != http.StatusOK || ready.Store != "ok" || ready.Attachments != want {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	state("ok")
	if got := h.web(http.MethodPost, "ours/messages", ownToken, body); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "files can't be stored now") {
		t.Errorf("%d %s", got.status, got.body)
	}
	state("can't be stored now")
	h.postWeb("without a file")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	state("ok")
	for _, want := range []int{http.StatusAccepted, http.StatusOK} { // the second is a repetition
		if got := h.web(http.MethodPost, "ours/messages", ownToken, body); got.status != want {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	h.awaitMetric(`parley_envelopes_total{disposition="stored",kind="message",reason="direct",workspace="ours"}`, 2)
}
