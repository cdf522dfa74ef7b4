// Package setup makes the files of a first configuration from a person's answers, and tries each answer
// at once.
package setup

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"parley/adapters"
	"parley/config"
)

// Choice is a platform, or a kind of agent.
type Choice struct {
	ID    string // in a flag
	Title string
	// Name is the name in the configuration; empty for the built-in workspace.
	Name string
	// Note names the steps before the answers; empty for none.
	Note string
	// Manifest describes an app of the platform; empty for none.
	Manifest string
	Fields   []adapters.Field
}

// Platforms returns the platforms to choose from.
func Platforms() (all []Choice) {
	for _, p := range config.Platforms() {
		if p.Setup != nil {
			all = append(all, Choice{ID: cmp.Or(p.Setup.ID, string(p.Name)), Title: cmp.Or(p.Setup.Title, p.Title), Name: string(p.Name), Note: p.Setup.Note, Manifest: p.Setup.Manifest, Fields: p.Setup.Fields})
		}
	}
	return append(all, Choice{ID: "http", Title: "Only HTTP, and parley chat in a terminal"})
}

// Agents returns the kinds of agents to choose from. The models are those of Ollama on this machine; nil
// if it does not answer.
func Agents(models []string) []Choice {
	key := func(env string) adapters.Field {
		return adapters.Field{Key: "api_key", Title: "API key", Secret: true, Env: env}
	}
	all := []Choice{
		{ID: "ollama", Title: "Ollama on this machine", Name: "openai", Fields: []adapters.Field{
			{Key: "base_url", Title: "Address of the API", Default: OllamaURL, Unasked: len(models) > 0}, {Key: "model", Title: "Model", Options: models},
		}},
		{ID: "openai", Title: "OpenAI, or any compatible API", Name: "openai", Fields: []adapters.Field{
			{Key: "base_url", Title: "Address of the API, with /v1", Default: "https://api.openai.com/v1"}, key("OPENAI_API_KEY"), {Key: "model", Title: "Model"},
		}},
		{ID: "anthropic", Title: "Anthropic", Name: "anthropic", Fields: []adapters.Field{
			{Key: "base_url", Title: "Address of the API", Default: "https://api.anthropic.com", Unasked: true}, key("ANTHROPIC_API_KEY"),
			{Key: "model", Title: "Model", Default: "claude-sonnet-4-5"},
		}},
		{ID: "agui", Title: "An AG-UI endpoint", Name: "agui", Fields: []adapters.Field{
			{Key: "url", Title: "Address of the endpoint"},
			{Key: "token", Title: "Bearer token", Secret: true, Env: "AGUI_TOKEN", Form: `headers: [{name: Authorization, value: "Bearer %s"}]`},
		}},
		{ID: "a2a", Title: "A service of A2A", Name: "a2a", Fields: []adapters.Field{
			{Key: "card", Title: "Address of the agent's card"}, {Key: "token", Title: "Token", Secret: true, Optional: true, Env: "A2A_TOKEN"},
		}},
		{ID: "webhook", Title: "Your own program, by a webhook", Name: "webhook", Fields: []adapters.Field{
			{Key: "url", Title: "Address of the program"}, {Key: "secret", Title: "Secret that signs the requests", Secret: true, Made: true, Env: "WEBHOOK_SECRET"},
		}},
		{ID: "acp", Title: "A coding agent on this machine, by the Agent Client Protocol", Name: "acp", Fields: []adapters.Field{
			{Key: "command", Title: "Program and its arguments, with commas between them, such as claude-code-acp", List: true}, {Key: "dir", Title: "Folder in which it works"},
		}},
		{ID: "echo", Title: "Later: until then, an echo answers", Name: "echo"},
	}
	if len(models) > 0 {
		all[0].Title += " (it answers)"
		return all
	}
	last := len(all) - 1
	return append(all[1:last:last], all[0], all[last])
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
func Models(ctx context.Context, address string) []string { return models(ctx, address, "") }

// models is Models with an API key, if it is not empty.
func models(ctx context.Context, address, key string) (ids []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/models", nil)
	if err != nil {
		return nil
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
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
