package slack_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"go.yaml.in/yaml/v3"

	"parley/adapters/slack"
)

// readManifest decodes a manifest strictly, because Slack refuses unknown fields.
func readManifest(t *testing.T, content []byte) slackgo.Manifest {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	var manifest slackgo.Manifest
	if err := decoder.Decode(&manifest); err != nil {
		t.Fatal(err)
	}
	return manifest
}

// TestManifestHasTheNeededScopesAndEvents checks that the manifest has these and no
// others.
func TestManifestHasTheNeededScopesAndEvents(t *testing.T) {
	content, err := os.ReadFile("manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := readManifest(t, content)
	scopes, events := slack.Needed()
	for what, lists := range map[string][2][]string{
		"scopes": {scopes, manifest.OAuthConfig.Scopes.Bot}, "events": {events, manifest.Settings.EventSubscriptions.BotEvents},
	} {
		for _, list := range lists {
			slices.Sort(list)
		}
		if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	features := manifest.Features
	if features.AgentView == nil || features.AssistantView != nil || !features.AppHome.MessagesTabEnabled || features.AppHome.MessagesTabReadOnlyEnabled ||
		features.BotUser.DisplayName == "" || len(features.SlashCommands) != 1 || features.SlashCommands[0].Command != "/parley" ||
		len(features.Shortcuts) != 1 || features.Shortcuts[0].Type != slackgo.MessageShortcut {
		t.Errorf("%+v", features)
	}
	if s := manifest.Settings; !s.SocketModeEnabled || !s.Interactivity.IsEnabled {
		t.Errorf("%+v", s)
	}
}

// TestManifestForHTTP removes each # and checks the addresses that Slack needs, and the
// prompts.
func TestManifestForHTTP(t *testing.T) {
	content, err := os.ReadFile("manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`(?m)^( +)# ((?:request_)?url: )`)
	if lines := len(address.FindAll(content, -1)); lines != 3 || !strings.Contains(string(content), "three lines with an address") {
		t.Errorf("%d lines", lines)
	}
	prompts := regexp.MustCompile(`(?m)^( +)# (suggested_prompts: )`)
	manifest := readManifest(t, prompts.ReplaceAll(address.ReplaceAll(content, []byte("$1$2")), []byte("$1$2")))
	if view := manifest.Features.AgentView; len(view.SuggestedPrompts) != 1 {
		t.Errorf("%+v", view)
	}
	const hook = "https://parley.example.com/hooks/slack/acme"
	got := []string{manifest.Features.SlashCommands[0].Url, manifest.Settings.EventSubscriptions.RequestUrl, manifest.Settings.Interactivity.RequestUrl}
	if diff := cmp.Diff([]string{hook, hook, hook}, got); diff != "" {
		t.Error(diff)
	}
}

// TestPageNamesTheScopes checks that the page has a reason for each scope, and names no other one.
func TestPageNamesTheScopes(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Scopes and their reasons")
	table, _, _ = strings.Cut(table, "\n## ")
	var named []string
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				named = append(named, name[1])
			}
		}
	}
	scopes, _ := slack.Needed()
	want := append(slices.Clone(scopes), "connections:write") // of the other token
	slices.Sort(named)
	slices.Sort(want)
	if diff := cmp.Diff(want, named); diff != "" {
		t.Error(diff)
	}
}
