package daemon_test

import (
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
