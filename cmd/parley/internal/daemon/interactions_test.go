package daemon_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// TestCommandIsAnsweredInChannel. The acknowledgement of a command is empty, and two commands
// share no transcript.
func TestCommandIsAnsweredInChannel(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.SetHook(slacktest.Hook{URL: h.url + "/hooks/slack/acme", Secret: signingSecret})
	for n, text := range []string{"what is up", "and now?"} {
		result, err := h.slack.PushRaw(slacktest.SlashCommands, fmt.Appendf(nil,
			`{"team_id":%q,"channel_id":%q,"channel_name":"garden","user_id":%q,"command":"/ask","text":%q,"trigger_id":"1.2.%d"}`,
			slacktest.Team, room, mara, text, n)).Wait(h.ctx)
		if err != nil || result.State != slacktest.Acked || len(result.Answer) != 0 {
			t.Fatalf("%+v, %v\n%s", result, err, h.log)
		}
		asked := h.answerNext(replyWith("Much."))
		if len(asked.messages) != 1 || asked.messages[0] != (chatMessage{"user", "[Mara (<@U0MARA>)]: /ask " + text}) {
			t.Errorf("the agent was asked %q", asked.messages)
		}
		if post := h.posts(n + 1)[n]; post.Channel != room || post.ThreadTS != "" || post.Text != "Much." {
			t.Errorf("%+v", post)
		}
	}
}

// TestOpenedThreadIsGreeted with the configured prompts.
func TestOpenedThreadIsGreeted(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: "timeout: 5s, suggested_prompts: [{title: Water, message: \"When do we water?\"}]"})
	h.accept(inner(fmt.Sprintf(`{"type":"assistant_thread_started","event_ts":"1750000000.000002",
		"assistant_thread":{"user_id":%q,"channel_id":%q,"thread_ts":"1750000000.000001","context":{"channel_id":%q}}}`, mara, direct, room)))
	for len(promptsOf(h)) == 0 {
		if !h.poll() {
			t.Fatalf("no prompt is shown\n%s", h.log)
		}
	}
	if got := promptsOf(h); len(got) != 1 || got[0] != (slacktest.Prompt{Title: "Water", Message: "When do we water?"}) {
		t.Errorf("%+v", got)
	}
	h.awaitMetric(envelopesMetric("other", "updated", ""), 1)
}

func promptsOf(h *harness) []slacktest.Prompt {
	_, prompts := h.slack.Prompts(direct, "1750000000.000001")
	return prompts
}

// TestFilesReachAgent: an image is a part of the input, and other files are names. The daemon
// asks once for an unavailable file, and never for one that is too large.
func TestFilesReachAgent(t *testing.T) {
	t.Parallel()
	const cloud = "\x1aE\xdf\xa3 a voice"
	page := strings.Repeat("x", 3000)
	asked := make(chan string, 100)
	h := open(t, plan{
		fake:  slacktest.Options{OnDownload: func(r *http.Request) { asked <- r.URL.Path }},
		files: map[string]string{"parley.yaml": strings.Replace(attachmentsConfig("sqlite:data/parley.db", "data/files", ""), "attachments: {", "attachments: {max_bytes: 2KiB, ", 1)},
	})
	for _, f := range []slacktest.File{
		{ID: "F0CAT", Name: "cat.png", MimeType: "image/png", Content: []byte(catPNG)},
		{ID: "F0TEXT", Name: "notes.txt", MimeType: "text/plain", Content: []byte("water them")},
		{ID: "F0VOICE", Name: "audio_message.webm", MimeType: "video/webm", Subtype: "slack_audio", Content: []byte(cloud)},
		{ID: "F0SIGN", Name: "secret.png", MimeType: "image/png", Unreadable: true},
		{ID: "F0LARGE", Name: "large.txt", MimeType: "text/plain", Content: []byte(page)},
		{ID: "F0FAR", Name: "far.txt", MimeType: "text/plain", Content: []byte("from afar"), Redirect: h.slack.CDN("F0FAR")},
		{ID: "F0GROWN", Name: "grown.txt", MimeType: "text/plain", Content: []byte(page)},
		{ID: "F0TOMB", Name: "gone.txt", MimeType: "text/plain", Content: []byte("gone")},
	} {
		h.slack.AddFile(f)
	}
	m := h.newMessage("<@" + slacktest.BotUser + "> look")
	h.accept(inner(fmt.Sprintf(`{"type":"message","subtype":"file_share","channel_type":"channel","channel":%q,"user":%q,"text":%q,"ts":%q,"files":[
		{"id":"F0CAT","name":"cat.png","mimetype":"image/png","size":15},
		{"id":"F0TEXT","name":"notes.txt","mimetype":"text/plain","size":10},
		{"id":"F0VOICE","name":"audio_message.webm","mimetype":"video/webm","filetype":"webm","subtype":"slack_audio","size":12},
		{"id":"F0SIGN","name":"secret.png","mimetype":"image/png","size":100},
		{"id":"F0LARGE","name":"large.txt","mimetype":"text/plain","size":3000},
		{"id":"F0FAR","file_access":"check_file_info"},
		{"id":"F0GROWN","name":"grown.txt","mimetype":"text/plain","size":0},
		{"id":"F0TOMB","mode":"tombstone"}]}`, m.Channel, m.User, m.Text, m.TS)))
	input := h.answerNext(replyWith("Nice.")).messages
	said := input[len(input)-1].Content
	for _, want := range []string{
		"data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(catPNG)),
		"``` notes.txt", "(file: audio_message.webm, audio/webm, ", "(file: secret.png", "(file: large.txt, text/plain, 3 kB)",
		"``` far.txt", "(file: grown.txt, text/plain, 3 kB)",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the input lacks %s:\n%s", want, said)
		}
	}
	if strings.Contains(said, "(file: unnamed") {
		t.Errorf("the input has a deleted file:\n%s", said)
	}
	h.posts(1)
	close(asked)
	paths := map[string]int{}
	for path := range asked {
		paths[path]++
	}
	for id, want := range map[string]bool{"F0CAT": true, "F0TEXT": true, "F0VOICE": true, "F0SIGN": true, "F0FAR": true, "F0LARGE": false, "F0TOMB": false} {
		n := 0
		for path, times := range paths {
			if strings.Contains(path, id) {
				n += times
			}
		}
		if n > 0 != want {
			t.Errorf("%s was downloaded %d times: %v", id, n, paths)
		}
	}
	if log := h.log.String(); h.warnings("attachment") != 3 || !strings.Contains(log, "sign-in page") || !strings.Contains(log, "max_bytes") {
		t.Errorf("the log:\n%s", log)
	}
}
