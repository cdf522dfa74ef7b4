package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/adapters/agent/openai"
)

// TestCheck asks servers that know the model, do not know it, refuse the key, or have no list.
func TestCheck(t *testing.T) {
	const missing = `{"error":{"message":"model \"llama3.2\" not found, try pulling it first"}}`
	for name, c := range map[string]struct {
		models, ping int    // the status of each resource
		list, said   string // the bodies
		key          string // of the fault; empty for none
		unclear      bool
		pings        int
	}{
		"known":           {models: 200, list: `{"data":[{"id":"other"},{"id":"llama3.2"}]}`},
		"known to Ollama": {models: 200, list: `{"data":[{"id":"llama3.2:latest"}]}`},
		"wrong key":       {models: 401, list: `{"error":{"message":"Incorrect API key provided: ` + canary + `"}}`, key: "api_key"},
		"missing":         {models: 200, list: `{"data":[]}`, ping: 404, said: missing, key: "model", pings: 1},
		"not listed":      {models: 200, list: `{"data":[]}`, ping: 200, said: `{}`, pings: 1},
		"refused by name": {models: 404, ping: 400, said: `{"error":{"message":"Invalid model: llama3.2"}}`, key: "model", pings: 1},
		"other bound":     {models: 404, ping: 400, said: `{"error":{"message":"llama3.2 does not support max_tokens"}}`, pings: 1},
		"no list":         {models: 404, ping: 401, said: `{}`, key: "api_key", pings: 1},
		"busy":            {models: 503, ping: 503, unclear: true, pings: 1},
	} {
		t.Run(name, func(t *testing.T) {
			pings := 0
			a := model(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Header.Get("Authorization") != "Bearer "+canary {
					t.Error("the key is missing")
				}
				if r.URL.Path == "/v1/models" {
					w.WriteHeader(c.models)
					_, _ = w.Write([]byte(c.list))
					return
				}
				pings++
				var asked struct {
					Model string
					Max   int `json:"max_tokens"`
				}
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Model != "llama3.2" || asked.Max != 1 {
					t.Errorf("%+v, %v", asked, err)
				}
				w.WriteHeader(c.ping)
				_, _ = w.Write([]byte(c.said))
			})
			findings, err := a.Check(t.Context())
			key := ""
			if len(findings) > 0 {
				key = findings[0].Key
			}
			if key != c.key || (err != nil) != c.unclear || pings != c.pings || strings.Contains(fmt.Sprint(findings, err), canary) {
				t.Errorf("%+v, %v after %d pings", findings, err, pings)
			}
		})
	}
}

// TestCheckOfNoServer asks an address at which nothing listens.
func TestCheckOfNoServer(t *testing.T) {
	settings := config("http://127.0.0.1:1")
	findings, err := openai.New(settings, nil, http.DefaultTransport).Check(t.Context())
	if err != nil || len(findings) != 1 || findings[0].Key != "base_url" || !findings[0].Fault {
		t.Errorf("%+v, %v", findings, err)
	}
}

// provider passes each request to a server, as if its host were far away.
type provider struct{ server string }

// RoundTrip implements http.RoundTripper.
func (p provider) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = p.server
	return http.DefaultTransport.RoundTrip(r)
}

// TestCheckOfPublicList asks a provider that shows its models to everybody: only a token tells whether the
// key is right.
func TestCheckOfPublicList(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(`{"data":[{"id":"llama3.2"}]}`))
	}))
	t.Cleanup(server.Close)
	a := openai.New(config("http://models.example.com"), nil, provider{server.Listener.Addr().String()})
	if findings, err := a.Check(t.Context()); err != nil || len(findings) != 1 || findings[0].Key != "api_key" {
		t.Errorf("%+v, %v", findings, err)
	}
}
