package assembly_test

import (
	"testing"

	"parley/assembly"
)

func TestMessagesOfATurnInOrder(t *testing.T) {
	early := said(7, ash, "sent first, came last")
	early.SentAt = said(1, ash, "").SentAt
	twin := said(6, ash, "same time, later")
	twin.SentAt = said(5, ash, "").SentAt
	transcript(t, `
--- user
[Ash (<@U03AAAAAAAA>)]: sent first, came last
--- user
[Olivia (<@U06STGBF4Q0>)]: five
--- user
[Ash (<@U03AAAAAAAA>)]: same time, later
`, asked(twin, said(5, olivia, "five"), early))
}

// TestFilesAreParts: the header is in the first text. Without a text, it is a text of its own
// before the files.
func TestFilesAreParts(t *testing.T) {
	image := assembly.File{Name: "a.png", MimeType: "image/png"}
	note := assembly.File{Name: "b.txt", MimeType: "text/plain"}
	reply := own(3, "")
	reply.Files = []assembly.File{note}
	old := said(4, olivia, "", image)
	old.Version = 0
	transcript(t, `
--- user
[Olivia (<@U06STGBF4Q0>)]: look
<file a.png image/png>
<file b.txt text/plain>
--- user
[Olivia (<@U06STGBF4Q0>)]:
<file a.png image/png>
--- assistant
<file b.txt text/plain>
--- user
<file a.png image/png>
`, assembly.Turn{Messages: []assembly.Line{said(1, olivia, "look", image, note), said(2, olivia, "", image)}, Reply: &reply}, asked(old))
}

func TestRowsOfVersionZeroStayUnchanged(t *testing.T) {
	old := said(1, olivia, "[Discord channel:1 user:Olivia] hi")
	old.Version = 0
	transcript(t, "--- system\n"+head+`
- [Discord channel:1 user:Olivia] hi
--- user
[Discord channel:1 user:Olivia] hi
`, assembly.Turn{Context: []assembly.Line{old}, Messages: []assembly.Line{old}})
}

func TestWindow(t *testing.T) {
	// Each turn is "[Ash (<@U03AAAAAAAA>)]: x" and "y": 25 + 1 bytes.
	turn := func(n int64) assembly.Turn {
		return assembly.Turn{Messages: []assembly.Line{said(n, ash, "x")}, Reply: ptr(own(n+1, "y"))}
	}
	turns := []assembly.Turn{turn(1), turn(3), turn(5), asked(said(7, ash, "z"))}
	for _, c := range []struct {
		window assembly.Window
		want   int // messages
	}{
		{assembly.Window{Turns: 50, Bytes: 1000}, 7},
		{assembly.Window{Turns: 2, Bytes: 1000}, 3},
		{assembly.Window{Turns: 50, Bytes: 25 + 26}, 3},
		{assembly.Window{Turns: 50, Bytes: 25 + 26 + 25}, 3},
		{assembly.Window{Turns: 50, Bytes: 25 + 26 + 26}, 5},
		{assembly.Window{Turns: 50, Bytes: 1}, 1},
		{assembly.Window{}, 1},
		{assembly.Window{Turns: -1, Bytes: -1, Thread: -1}, 1},
	} {
		got := assembly.Assemble("echo", turns, c.window, mentions)
		if len(got) != c.want || got[len(got)-1].Text() != "[Ash (<@U03AAAAAAAA>)]: z" {
			t.Errorf("%+v: %d messages, want %d:\n%s", c.window, len(got), c.want, show(got))
		}
	}
	if got := assembly.Assemble("echo", nil, wide, mentions); got != nil {
		t.Errorf("no turns: %v", got)
	}
}

// TestWindowDropsWholeTurnsFromTheOldest: an old turn is dropped with its block, and no older
// turn replaces a large one.
func TestWindowDropsWholeTurnsFromTheOldest(t *testing.T) {
	large := assembly.Turn{Root: ptr(said(1, ash, "a root")), Messages: []assembly.Line{said(2, ash, "x")}}
	got := assembly.Assemble("echo", []assembly.Turn{asked(said(0, ash, "s")), large, asked(said(7, ash, "z"))}, assembly.Window{Turns: 50, Bytes: 100}, mentions)
	if want := "--- user\n[Ash (<@U03AAAAAAAA>)]: z\n"; show(got) != want {
		t.Errorf("got:\n%swant:\n%s", show(got), want)
	}
}

func TestAnEmptyReplyIsNotShown(t *testing.T) {
	transcript(t, "--- user\n[Ash (<@U03AAAAAAAA>)]: x\n", assembly.Turn{Messages: []assembly.Line{said(1, ash, "x")}, Reply: ptr(own(2, ""))})
}
