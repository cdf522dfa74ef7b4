package daemon_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
)

// talks are the conversations of the documentation's picture, the oldest first: a question and its answer in turn.
var talks = [][]string{
	{"Draft a note to the team about Friday's release", "**Release on Friday.** The freeze begins on Thursday at noon. Please merge before it."},
	{"What does exit code 137 mean?", "The kernel killed the process, most often because the container reached its limit of memory."},
	{"Who is on call this weekend?", "Mara, from Friday 18:00 to Monday 9:00. Tom is her second."},
	{
		"Which of our backups ran last night?",
		"Two of the three:\n\n| Backup | Ended | Size | Result |\n|---|---|---:|---|\n| orders | 02:14 | 4.1 GB | complete |\n| customers | 02:31 | 860 MB | complete |\n| media | 03:05 | – | **failed**: no space on `backup-2` |\n",
		"How do I free some space and run media again?",
		"Delete the copies that are older than 30 days, then start the job by hand:\n\n```sh\nssh backup-2 find /srv/backup -mtime +30 -delete\nssh backup-2 systemctl start backup-media\n```\n\nThe job takes about half an hour.",
	},
}

//go:generate sh -c "PARLEY_TEST_SCREENSHOTS=$(realpath ../../../../.github/pictures) go test -count=1 -run ^TestChatPictures$ ."

// TestChatPictures converses with an agent on the page /chat: its answers' table and code are laid out, nothing needs a scroll
// to the side, light and dark, wide and narrow. With a folder for screenshots, it makes the pictures of the documentation.
func TestChatPictures(t *testing.T) {
	t.Parallel()
	const apart = 19 * time.Hour                                                                                                         // from one conversation to the next
	h := open(t, plan{clock: &clock{ahead: -time.Duration(len(talks)-1) * apart}, files: map[string]string{"workspaces/ours.yaml": ""}}) // the built-in workspace is the only one of the web
	tab := browsertest.Open(t)
	tab.Theme("light")
	tab.Size(1280, 660)
	tab.Goto(h.url + "/chat#" + h.local())
	tab.Role("button", "Continue as You").Click()
	for i, talk := range talks {
		if i > 0 {
			h.clock.advance(apart)
			tab.Goto(h.url + "/chat")
		}
		for i := 0; i < len(talk); i += 2 {
			tab.Find("[data-test=input]").Type(talk[i])
			tab.Press(kb.Enter)
			h.answerNext(replyWith(talk[i+1]))
			tab.Wait(fmt.Sprintf("%s.length === %d", inElement("[part=complete]"), i/2+1))
		}
	}
	tab.Wait("[...document.querySelectorAll('#threads span')].every(e => e.textContent.length > 1)")
	for _, found := range []string{"table", "pre"} {
		if n := browsertest.Eval[int](tab, inElement(found)+".length"); n != 1 {
			t.Errorf("the page has %d elements %s", n, found)
		}
	}
	if n := browsertest.Eval[int](tab, "document.querySelectorAll('#threads li').length"); n != len(talks) {
		t.Errorf("the list has %d conversations", n)
	}
	for _, look := range []string{"light", "dark"} {
		tab.Theme(look)
		for _, width := range []int64{390, 1280} {
			tab.Size(width, 660)
			if n := browsertest.Eval[int](tab, "document.documentElement.scrollWidth"); n > int(width) {
				t.Errorf("%s has %d pixels", look, n)
			}
		}
		tab.Screenshot("chat-" + look)
	}
}
