package daemon_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWhySaysThatAFileChanged after the decision about a message: the shown values are the present ones.
func TestWhySaysThatAFileChanged(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "policy: {require_mention: true}"})
	m := h.mention("one")
	h.answerNext(replyWith("Noted."))
	h.posts(1)
	file := filepath.Join(h.dir, "workspaces", "acme.yaml")
	for changed, at := range map[bool]time.Time{false: time.Unix(1, 0), true: time.Now().Add(48 * time.Hour)} {
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		w, err := h.operate().Why(h.ctx, room+"/"+m.TS)
		if err != nil || len(w.Because) == 0 || (w.Changed != "") != changed || changed && !strings.Contains(w.Changed, "acme.yaml") {
			t.Errorf("changed %v: %v %+v", changed, err, w)
		}
	}
}

// TestWhyNamesTheAgentsError: the reason for which a run began is not why it has no answer.
func TestWhyNamesTheAgentsError(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.newMessage("<@U0BOT> hello")
	h.accept(m.Mention())
	h.answerNext(func(w http.ResponseWriter) { http.Error(w, "wrong key", http.StatusUnauthorized) })
	w, err := h.operate().Why(h.ctx, room+"/"+m.TS)
	for err == nil && w.Run == "running" && h.poll() {
		w, err = h.operate().Why(h.ctx, room+"/"+m.TS)
	}
	if err != nil || w.Run != "failed" || !strings.Contains(w.RunWords, "the agent helper: ") || !strings.Contains(w.RunWords, "401") || !strings.HasPrefix(w.Repair, "parley runs retry ") {
		t.Errorf("%v %q %q %q", err, w.Run, w.RunWords, w.Repair)
	}
}
