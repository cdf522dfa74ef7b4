// Package setup makes the files of a first configuration from a person's answers, and tries each answer
// at once.
package setup

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"
)

// Field is one setting that a person gives.
type Field struct {
	Key   string // of the block of the platform or of the agent
	Title string
	// Secret values go into a file of their own.
	Secret bool
	// Default is the value of an empty answer.
	Default string
	// Env is the environment variable that has the value for scripts; empty for none.
	Env string
	// Options are the values to choose from; empty if any text may be the value.
	Options []string
	// Unasked says that the value is the default, which is also that of the configuration, unless one is given.
	Unasked bool
	// Made says that a random word is the value unless one is given.
	Made bool
	// Form is the line of the file, with %s for the value; empty for the key and the value.
	Form string
}

// Choice is a platform, or a kind of agent.
type Choice struct {
	ID    string // in a flag
	Title string
	// Name is the name in the configuration; empty for the built-in workspace.
	Name string
	// Note names the steps before the answers; empty for none.
	Note   string
	Fields []Field
}

// Platforms returns the platforms to choose from.
func Platforms() []Choice {
	return []Choice{
		{ID: "slack", Title: "Slack", Name: "slack",
			Note: "Make an app from adapters/slack/manifest.yaml at https://api.slack.com/apps, install it, and make an app-level token with connections:write.",
			Fields: []Field{
				{Key: "app_token", Title: "App-level token (xapp-…)", Secret: true, Env: "SLACK_APP_TOKEN"},
				{Key: "bot_token", Title: "Bot token (xoxb-…)", Secret: true, Env: "SLACK_BOT_TOKEN"},
				{Key: "api_url", Title: "Address of the API", Default: "https://slack.com/api/", Unasked: true},
			}},
		{ID: "discord", Title: "Discord", Name: "discord",
			Note: "Make an application at https://discord.com/developers/applications and turn on its Message Content Intent.",
			Fields: []Field{
				{Key: "token", Title: "Token of the bot", Secret: true, Env: "DISCORD_TOKEN"},
				{Key: "api_url", Title: "Address of the API", Default: "https://discord.com/api/v10", Unasked: true},
			}},
		{ID: "imessage", Title: "iMessage, by a BlueBubbles server on a Mac", Name: "bluebubbles",
			Note: "Install a BlueBubbles server on a Mac: https://bluebubbles.app.",
			Fields: []Field{
				{Key: "url", Title: "Address of the BlueBubbles server", Env: "BLUEBUBBLES_URL"},
				{Key: "password", Title: "Password of the server", Secret: true, Env: "BLUEBUBBLES_PASSWORD"},
				{Key: "webhook_secret", Title: "Secret of the webhook", Secret: true, Made: true},
			}},
		{ID: "http", Title: "Only HTTP, and parley chat in a terminal"},
	}
}

// Agents returns the kinds of agents to choose from. The models are those of Ollama on this machine; nil
// if it does not answer.
func Agents(models []string) []Choice {
	key := func(env string) Field { return Field{Key: "api_key", Title: "API key", Secret: true, Env: env} }
	all := []Choice{
		{ID: "ollama", Title: "Ollama on this machine", Name: "openai", Fields: []Field{
			{Key: "base_url", Title: "Address of the API", Default: OllamaURL, Unasked: len(models) > 0}, {Key: "model", Title: "Model", Options: models},
		}},
		{ID: "openai", Title: "OpenAI, or any compatible API", Name: "openai", Fields: []Field{
			{Key: "base_url", Title: "Address of the API, with /v1", Default: "https://api.openai.com/v1"}, key("OPENAI_API_KEY"), {Key: "model", Title: "Model"},
		}},
		{ID: "anthropic", Title: "Anthropic", Name: "anthropic", Fields: []Field{
			{Key: "base_url", Title: "Address of the API", Default: "https://api.anthropic.com", Unasked: true}, key("ANTHROPIC_API_KEY"),
			{Key: "model", Title: "Model", Default: "claude-sonnet-4-5"},
		}},
		{ID: "agui", Title: "An AG-UI endpoint", Name: "agui", Fields: []Field{
			{Key: "url", Title: "Address of the endpoint"},
			{Key: "token", Title: "Bearer token", Secret: true, Env: "AGUI_TOKEN", Form: `headers: [{name: Authorization, value: "Bearer %s"}]`},
		}},
		{ID: "webhook", Title: "Your own program, by a webhook", Name: "webhook", Fields: []Field{
			{Key: "url", Title: "Address of the program"}, {Key: "secret", Title: "Secret that signs the requests", Secret: true, Made: true, Env: "WEBHOOK_SECRET"},
		}},
		{ID: "echo", Title: "Later: until then, an echo answers", Name: "echo"},
	}
	if len(models) > 0 {
		all[0].Title += " (it answers)"
		return all
	}
	return append(all[1:5:5], all[0], all[5])
}

// Find returns the choice with an id.
func Find(all []Choice, id string) (Choice, bool) {
	i := slices.IndexFunc(all, func(c Choice) bool { return c.ID == id })
	if i < 0 {
		return Choice{}, false
	}
	return all[i], true
}

// OllamaURL is the address of the API of Ollama on this machine.
const OllamaURL = "http://127.0.0.1:11434/v1"

// Models returns the models of the server of a compatible API at an address; nil if none answers within a
// second.
func Models(ctx context.Context, address string) (ids []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/models", nil)
	if err != nil {
		return nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&list) != nil {
		return nil
	}
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	return ids
}

// made returns a random word.
func made() string { return rand.Text() }
