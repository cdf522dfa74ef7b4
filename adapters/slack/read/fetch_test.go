package read_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
)

func TestFetchReadsAFileByItsID(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	for _, kind := range []string{"text/plain", "text/html"} {
		server.AddFile(slacktest.File{ID: "F1", Name: "a b.txt", MimeType: kind, Content: []byte("content")})
		content, err := adapter.Fetch(t.Context(), event.Attachment{ID: "F1"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(content)
		if string(got) != "content" || err != nil || content.Close() != nil {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
}

func TestFetchErrors(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	for id, file := range map[string]slacktest.File{
		"sign-in page":          {ID: "F1", MimeType: "image/png", Unreadable: true},
		"sign-in page ":         {ID: "F2", MimeType: "text/html", Unreadable: true},
		"404":                   {ID: "F3", DownloadURL: strings.TrimSuffix(server.URL(), "api/") + "files-pri/F9/x"},
		"which is not slack's":  {ID: "F4", DownloadURL: "https://files.slack.com.evil.example/x"},
		"which is not slack's ": {ID: "F5", DownloadURL: "http://files.slack.com/x"},
		"is not slack's":        {ID: "F6", DownloadURL: "https://user@files.slack.com/x"},
		"not slack's":           {ID: "F7", DownloadURL: "file:///etc/passwd"},
		"can't be read":         {ID: "F8", DownloadURL: "https://files.slack.com/%zz"},
	} {
		server.AddFile(file)
		_, err := adapter.Fetch(t.Context(), event.Attachment{ID: file.ID})
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(id)) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := adapter.Fetch(t.Context(), event.Attachment{ID: "F0"}); err == nil || !strings.Contains(err.Error(), "file_not_found") {
		t.Errorf("an unknown file: %v", err)
	}
}

// TestFetchReadsFilesOfGovSlack proves that GovSlack's file host is asked for a file.
func TestFetchReadsFilesOfGovSlack(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	server.AddFile(slacktest.File{ID: "F1", DownloadURL: "https://files.slack-gov.com/files-pri/F1"})
	asked := ""
	adapter.Client.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(server.URL(), "http://"+address) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		asked = address
		return nil, errors.New("no network")
	}
	if _, err := adapter.Fetch(t.Context(), event.Attachment{ID: "F1"}); asked != "files.slack-gov.com:443" {
		t.Errorf("asked %q: %v", asked, err)
	}
}

// TestFetchFollowsRedirectsWithinSlack checks that only the first host gets the token.
func TestFetchFollowsRedirectsWithinSlack(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	server.AddFile(slacktest.File{ID: "F1", Name: "a.html", MimeType: "text/html", Content: []byte("<p>"), Redirect: server.CDN("F1")})
	content, err := adapter.Fetch(t.Context(), event.Attachment{ID: "F1"})
	if err != nil {
		t.Fatal(err) // the second server refuses a request with a token
	}
	read, err := io.ReadAll(content)
	if string(read) != "<p>" || err != nil || content.Close() != nil {
		t.Errorf("%q, %v", read, err)
	}
	want := event.Attachment{ID: "F1", Name: "a.html", MimeType: "text/html", Size: 3}
	if got := content.(adapters.Described).Describe(); got != want {
		t.Errorf("described as %+v, want %+v", got, want)
	}
}

// TestFetchAsksForFilesOfOtherTeams: a message of Slack Connect has only the id of another team's
// file, so files.info describes it before it is read.
func TestFetchAsksForFilesOfOtherTeams(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	file := slacktest.File{ID: "F1", Name: "audio_message.webm", MimeType: "video/webm", Content: []byte("sound"), Subtype: "slack_audio", DurationMS: 3200}
	server.AddFile(file)
	content, err := adapter.Fetch(t.Context(), event.Attachment{ID: "F1"})
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	want := event.Attachment{ID: "F1", Name: "audio_message.webm", MimeType: "audio/webm", Size: 5, Type: event.TypeVoice, DurationMS: 3200}
	if got := content.(adapters.Described).Describe(); got != want {
		t.Errorf("described as %+v, want %+v", got, want)
	}
	file.Mode = "tombstone"
	server.AddFile(file)
	if _, err := adapter.Fetch(t.Context(), event.Attachment{ID: "F1"}); err == nil {
		t.Error("a deleted file is read")
	}
}

// TestRedirectTargets checks the hosts from which files may come, and the hosts that
// get the token.
func TestRedirectTargets(t *testing.T) {
	adapter := testapp.New("https://slack.com/api/")
	const files = "https://files.slack.com/files-pri/F1"
	for _, c := range []struct {
		chain  []string
		token  bool
		refuse bool
	}{
		{[]string{files, "https://files.slack.com/other"}, true, false},
		{[]string{files, "https://a.slack-edge.com/x"}, false, false},
		{[]string{files, "https://slack-files.com/x"}, false, false},
		{[]string{files, "https://acme.slack.com/?redir=x"}, false, false},
		{[]string{"https://files.slack-gov.com/x", "https://slack-files-gov.com/x"}, false, false},
		{[]string{"https://files.slack-gov.com/x", "https://acme.slack-gov.com/?redir=x"}, false, false},
		{[]string{files, "https://a.slack-edge.com/x", files}, false, false}, // back at the first host
		{[]string{files, "http://files.slack.com/x"}, false, true},
		{[]string{files, "https://files.slack.com:8443/x"}, false, true},
		{[]string{files, "https://files.slack.com.evil.example/x"}, false, true},
		{[]string{files, "https://evilslack.com/x"}, false, true},
		{[]string{files, "https://user@files.slack.com/x"}, false, true},
		{[]string{files, "http://169.254.169.254/latest"}, false, true},
		{[]string{files, "http://127.0.0.1/x"}, false, true},
		{[]string{files, files, files, files, files}, true, true}, // too many redirects
	} {
		token, err := adapter.FollowRedirects(c.chain...)
		if (err != nil) != c.refuse || (err == nil && token != c.token) {
			t.Errorf("%q: token %v, %v", c.chain, token, err)
		}
	}
}

func TestLookupUserReturnsTheShownName(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	for _, c := range []struct {
		user slacktest.User
		want adapters.User
	}{
		{slacktest.User{ID: "U1", Name: "ash", RealName: "Ash Ley", DisplayName: "Ashy"}, adapters.User{DisplayName: "Ashy"}},
		{slacktest.User{ID: "U2", Name: "ash", RealName: "Ash Ley", DisplayName: " "}, adapters.User{DisplayName: "Ash Ley"}},
		{slacktest.User{ID: "U3", Name: "ash"}, adapters.User{DisplayName: "ash"}},
		{slacktest.User{ID: "U4", Name: "hal", IsBot: true}, adapters.User{DisplayName: "hal", IsBot: true}},
		{slacktest.User{ID: "USLACKBOT", Name: "slackbot"}, adapters.User{DisplayName: "slackbot", IsBot: true}},
	} {
		server.AddUser(c.user)
		if got, err := adapter.LookupUser(t.Context(), c.user.ID); got != c.want || err != nil {
			t.Errorf("%+v: %+v, %v", c.user, got, err)
		}
	}
	if _, err := adapter.LookupUser(t.Context(), "U9"); err == nil || !strings.Contains(err.Error(), "user_not_found") {
		t.Errorf("an unknown user: %v", err)
	}
}

// TestLookupMentionNamesOpenChannels: a private channel has a name only in itself, because a person who sees
// its token elsewhere need not be in it.
func TestLookupMentionNamesOpenChannels(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	server.SetChannel(slacktest.Channel{ID: "C1", Name: "general"})
	server.SetChannel(slacktest.Channel{ID: "C2", Name: "salaries", Kind: slacktest.PrivateChannel})
	for _, c := range []struct{ in, token, want string }{
		{"C9", "<#C1>", "general"}, {"C2", "<#C2>", "salaries"},
		{"C1", "<#C2>", ""}, {"C1", "<#C9>", ""}, {"C1", "<!subteam^S1>", ""}, {"C1", "<#C1/../C2>", ""},
	} {
		got, err := adapter.LookupMention(t.Context(), c.in, c.token)
		if got != c.want || errors.Is(err, adapters.ErrNoName) != (c.want == "") {
			t.Errorf("%s in %s: %q, %v; want %q", c.token, c.in, got, err, c.want)
		}
	}
}
