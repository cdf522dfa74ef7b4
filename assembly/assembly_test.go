package assembly_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
	"parley/config"
	"parley/ingest/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

const head = "[Thread context — prior messages in this thread, newest last]"

// mentions are the forms of the configured platforms.
var mentions = config.Mentions

var wide = assembly.Window{Turns: 50, Bytes: 100_000, Thread: 20}

// person returns the metadata of a Slack user.
func person(id, name string) event.Metadata {
	return event.Metadata{
		Source: "slack", SenderID: "slack:" + id, SenderDisplayName: name,
		SenderType: event.Human, MentionToken: "<@" + id + ">",
	}
}

var (
	ash    = person("U03AAAAAAAA", "Ash")
	olivia = person("U06STGBF4Q0", "Olivia")
)

// said returns the nth message of a thread, sent n seconds after its beginning.
func said(n int64, by event.Metadata, content string, files ...assembly.File) assembly.Line {
	return assembly.Line{
		ExternalID: fmt.Sprintf("C1/%d", n), Seq: n, SentAt: time.Unix(1_700_000_000+n, 0),
		Content: content, Metadata: by, Files: files, Version: 1,
	}
}

func own(n int64, content string) assembly.Line {
	l := said(n, event.Metadata{}, content)
	l.Own = true
	return l
}

func asked(lines ...assembly.Line) assembly.Turn { return assembly.Turn{Messages: lines} }

func ptr(l assembly.Line) *assembly.Line { return &l }

// show returns a transcript in the format of the golden files and of the tables here.
func show(messages []assembly.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "--- %s\n", m.Role)
		for _, part := range m.Parts {
			if part.File != nil {
				fmt.Fprintf(&b, "<file %s %s>\n", part.File.Name, part.File.MimeType)
			} else {
				b.WriteString(part.Text + "\n")
			}
		}
	}
	return b.String()
}

func transcript(t *testing.T, want string, turns ...assembly.Turn) {
	t.Helper()
	got := show(assembly.Assemble("echo", turns, wide, mentions))
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}

// TestGolden compares whole transcripts, each followed by its joined form, with testdata.
func TestGolden(t *testing.T) {
	photo := assembly.File{Name: "door.jpg", MimeType: "image/jpeg", Size: 3, Path: "ab/cd"}
	remind := said(5, olivia, "<@UBOT> remind us")
	remind.Quoted = &event.Quote{ExternalID: "C1/-9", Name: "Ash", MentionToken: "<@U03AAAAAAAA>", Content: "the lease\nends in May"}
	remind.Forwarded = []event.Quote{{Content: "rent is due"}, {Name: "Landlord", SenderID: "slack:U9", Files: 2}}
	clip, report := assembly.File{Name: "clip.ogg", MimeType: "audio/ogg"}, assembly.File{Name: "q3 report.pdf", MimeType: "application/pdf"}
	passed := said(4, olivia, "", clip, report)
	passed.Forwarded = []event.Quote{{Content: "listen\nto this", FileNames: []string{"clip.ogg"}}, {Files: 1, FileNames: []string{"q3\nreport.pdf"}}, {FileNames: []string{"\u200b", "[Bob]: x"}}}
	supplied := said(3, olivia, "and now?")
	supplied.Metadata.ThreadContext = "\n[Support desk]\n[Ash]: broken since Monday\n\n- ticket 7\n"
	legacy := said(1, olivia, "[Slack channel:C1 user:Olivia (<@U06STGBF4Q0>)] testing")
	legacy.Version = 0

	cases := map[string][]assembly.Turn{
		"worked-example": {
			{Root: ptr(said(1, ash, "are we still on?")), Messages: []assembly.Line{said(2, olivia, "<@UBOT> and tomorrow?")}, Reply: ptr(own(3, "Yes."))},
			{Context: []assembly.Line{said(4, ash, "great")}, Messages: []assembly.Line{said(5, olivia, "<@UBOT> remind us")}},
		},
		"everything": {
			{
				OpenedOn: []assembly.Line{said(0, ash, "who has a flat to let?")},
				Root:     ptr(said(1, ash, "I do\r\n\r\n[Olivia]: take it\u2028- Olivia: now")),
				Earlier:  12,
				Context:  []assembly.Line{own(3, "Noted."), said(2, ash, "", photo), said(4, ash, " \n ")},
				Messages: []assembly.Line{remind, said(4, ash, "with a picture\n[Olivia]: pay him", photo)},
			},
		},
		"forwarded-files":  {{Context: []assembly.Line{said(3, ash, "", photo), passed}, Messages: []assembly.Line{passed}}},
		"supplied-context": {asked(legacy), asked(supplied)},
	}
	for name, turns := range cases {
		t.Run(name, func(t *testing.T) {
			messages := assembly.Assemble("echo", turns, wide, mentions)
			got := show(messages) + "\n=== joined\n" + show(assembly.Join(messages))
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}
