package slacktest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

func TestUpload(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	summary, err := client.UploadFileContext(t.Context(), slack.UploadFileParameters{Filename: "answer.txt", Title: "The answer",
		FileSize: 2, Reader: strings.NewReader("42"), Channel: channel, ThreadTimestamp: root, InitialComment: "here"})
	if err != nil {
		t.Fatal(err)
	}
	posts, uploads := server.Posts(), server.Uploads()
	if len(posts) != 1 || len(uploads) != 1 {
		t.Fatalf("posts %+v, uploads %+v", posts, uploads)
	}
	if p := posts[0]; p.Text != "here" || p.ThreadTS != root || cmp.Diff([]string{summary.ID}, p.Files) != "" {
		t.Errorf("%+v", p)
	}
	if u := uploads[0]; string(u.Content) != "42" || u.Name != "answer.txt" || u.Title != "The answer" || u.TS != posts[0].TS {
		t.Errorf("%+v", u)
	}
	file, _, _, err := client.GetFileInfoContext(t.Context(), summary.ID, 1, 1)
	if err != nil || file.Shares.Public[channel][0].Ts != posts[0].TS {
		t.Errorf("%+v, %v", file.Shares, err)
	}
	replies, _, _, err := client.GetConversationRepliesContext(t.Context(),
		&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root})
	if err != nil || len(replies) != 1 || len(replies[0].Files) != 1 || replies[0].Files[0].Name != "answer.txt" {
		t.Errorf("%+v, %v", replies, err)
	}
	var content strings.Builder
	if err := client.GetFileContext(t.Context(), file.URLPrivateDownload, &content); err != nil || content.String() != "42" {
		t.Errorf("%q, %v", content.String(), err)
	}
}

func TestUploadWithoutForm(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	ticket, err := client.GetUploadURLExternalContext(t.Context(), slack.GetUploadURLExternalParameters{FileName: "x.bin", FileSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	send := func(body string) int {
		response, err := http.Post(ticket.UploadURL, "application/octet-stream", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	complete := func() error {
		_, err := client.CompleteUploadExternalContext(t.Context(),
			slack.CompleteUploadExternalParameters{Files: []slack.FileSummary{{ID: ticket.FileID}}, Channel: channel})
		return err
	}
	wantCode(t, "complete too early", complete(), "file_not_found")
	server.Script("files.upload", slacktest.Fault{Status: 500})
	got := []int{send("four"), send("abc"), send("abc")}
	if diff := cmp.Diff([]int{400, 500, 200}, got); diff != "" {
		t.Error(diff)
	}
	wantCode(t, "complete", complete(), "")
	wantCode(t, "complete twice", complete(), "file_not_found")
	if uploads := server.Uploads(); len(uploads) != 1 || string(uploads[0].Content) != "abc" {
		t.Errorf("%+v", uploads)
	}
}

func TestUploadsAreBounded(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	announce := func(size int) error {
		_, err := client.GetUploadURLExternalContext(t.Context(), slack.GetUploadURLExternalParameters{FileName: "x", FileSize: size})
		return err
	}
	wantCode(t, "too large", announce(64<<20+1), "file_upload_size_restricted")
	for range 16 {
		wantCode(t, "the largest size", announce(64<<20), "")
	}
	wantCode(t, "more than the server can store", announce(1), "storage_limit_reached")
	code := refused(t, server, "files.completeUploadExternal", `files=[{"id":"F0UP000001"}]`, "channels="+strings.Repeat("C1,", 101))
	if code != "channels_limit_exceeded" {
		t.Errorf("too many channels: %q", code)
	}
	response, err := http.Get(strings.TrimSuffix(server.URL(), "api/") + "upload/v1/F0UP000001")
	if err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("an upload is readable: %v", err)
	}
	_ = response.Body.Close()
}

func TestManySmallUploadsAreBounded(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	for range 1_000 {
		if code := refused(t, server, "files.getUploadURLExternal", "filename=x", "length=1"); code != "" {
			t.Fatal(code)
		}
	}
	if code := refused(t, server, "files.getUploadURLExternal", "filename=x", "length=1"); code != "storage_limit_reached" {
		t.Errorf("the upload over the limit: %q", code)
	}
}
