package slacktest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/slacktest"
)

func fetch(t *testing.T, address string) (int, string) {
	t.Helper()
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	request.Header.Set("Authorization", "Bearer "+slacktest.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func TestDownloadRedirects(t *testing.T) {
	var tokens []string
	server, client := start(t, slacktest.Options{OnDownload: func(r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
	}})
	server.AddFile(slacktest.File{ID: "F1", Name: "a.txt", MimeType: "text/plain", Content: []byte("content"), Redirect: server.CDN("F1")})
	file, _, _, err := client.GetFileInfoContext(t.Context(), "F1", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := fetch(t, file.URLPrivateDownload); status != http.StatusOK || body != "content" {
		t.Errorf("%d %q", status, body)
	}
	if diff := cmp.Diff([]string{"Bearer " + slacktest.Token, ""}, tokens); diff != "" {
		t.Error(diff)
	}
	if status, _ := fetch(t, server.CDN("F1")); status != http.StatusBadRequest {
		t.Errorf("the other host accepts our token with status %d", status)
	}
}

func TestVoiceClipHasTranscription(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	server.AddFile(slacktest.File{ID: "F1", Name: "clip.m4a", MimeType: "audio/mp4", Size: 5 << 30, Subtype: "slack_audio", Transcription: "hello there"})
	file, _, _, err := client.GetFileInfoContext(t.Context(), "F1", 1, 1)
	if err != nil || file.Size != 5<<30 || file.Transcription == nil || file.Transcription.Preview == nil ||
		file.Transcription.Preview.Content != "hello there" {
		t.Errorf("%+v, %v", file, err)
	}
}

func TestFaultsOfDownload(t *testing.T) {
	server, _ := start(t, slacktest.Options{})
	server.AddFile(slacktest.File{ID: "F1", Name: "a", MimeType: "text/plain", Content: []byte("content")})
	server.Script("files.download", slacktest.RateLimited(0), slacktest.Fault{Status: 503})
	address := strings.TrimSuffix(server.URL(), "api/") + "files-pri/F1/download/a"
	var got []int
	for range 3 {
		status, _ := fetch(t, address)
		got = append(got, status)
	}
	if diff := cmp.Diff([]int{429, 503, 200}, got); diff != "" {
		t.Error(diff)
	}
}
