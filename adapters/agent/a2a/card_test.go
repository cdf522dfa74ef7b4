package a2a_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/a2a"
	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/config/secret"
)

// check returns the findings about a service with a card, a line each, and the service's last request.
func check(t *testing.T, config a2a.Config, card http.HandlerFunc) (findings []string, got *http.Request, err error) {
	t.Helper()
	address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			card(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		got = r
		refuses(-32001)(w, r)
	})
	config.Card, config.Config = address+"/card", remote.DefaultConfig()
	if config.URL != "" {
		config.URL = address + config.URL
	}
	var list []adapters.Finding
	list, err = a2a.New(config, nil, http.DefaultTransport).Check(t.Context())
	for _, f := range list {
		findings = append(findings, fmt.Sprintf("%s %v: %s", f.Key, f.Fault, strings.ReplaceAll(f.Words, address, "ADDRESS")))
	}
	return findings, got, err
}

// writes answers with a card, in which ADDRESS is the server's.
func writes(card string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(card, "ADDRESS", "http://"+r.Host))
	}
}

// TestCards checks the findings about cards, and the place of the token in a request.
func TestCards(t *testing.T) {
	const sound = `{"name":"Fake","protocolVersion":"0.3.0","url":"ADDRESS/rpc"`
	note := func(words string) string {
		return `card false: the agent "Fake" speaks A2A 0.3.0 over JSON-RPC (streams: no, push notifications: no); ` + words
	}
	fault := func(key, words string) string { return key + " true: the agent can't answer: " + words }
	authorization := func(r *http.Request) string { return r.Header.Get("Authorization") }
	for name, c := range map[string]struct {
		card, token string
		want        string
		sent        func(r *http.Request) string // has the token
	}{
		"no schemes":             {sound + `}`, "", note("no token is sent"), nil},
		"no schemes for a token": {sound + `}`, "tok", note("the token is sent as a bearer token"), authorization},
		"bearer":                 {sound + `,"securitySchemes":{"m":{"type":"mutualTLS"},"b":{"type":"http","scheme":"Bearer"}},"security":[{"m":[]},{"b":[]}]}`, "tok", note("the token is sent as a bearer token"), authorization},
		"oauth2":                 {sound + `,"securitySchemes":{"o":{"type":"oauth2","flows":{}}},"security":[{"o":["read"]}]}`, "tok", note("the token is sent as a bearer token"), authorization},
		"a key in a header": {sound + `,"securitySchemes":{"k":{"type":"apiKey","in":"header","name":"X-Key"}},"security":[{"k":[]}]}`, "tok", note("the token is sent in the header X-Key"),
			func(r *http.Request) string { return "Bearer " + r.Header.Get("X-Key") }},
		"a key in the query": {sound + `,"securitySchemes":{"k":{"type":"apiKey","in":"query","name":"key"}}}`, "tok", note("the token is sent in the query key"),
			func(r *http.Request) string { return "Bearer " + r.URL.Query().Get("key") }},
		"a key in a cookie": {sound + `,"securitySchemes":{"k":{"type":"apiKey","in":"cookie","name":"key"}}}`, "tok", note("the token is sent in the cookie key"),
			func(r *http.Request) string {
				return "Bearer tok" + strings.TrimPrefix(r.Header.Get("Cookie"), "key=tok")
			}},
		"a token that is missing":  {sound + `,"securitySchemes":{"b":{"type":"http","scheme":"bearer"}},"security":[{"b":[]}]}`, "", fault("token", "is required: the agent takes only requests with a token (its security scheme is b)"), nil},
		"a token that is optional": {sound + `,"securitySchemes":{"b":{"type":"http","scheme":"bearer"}},"security":[{"b":[]},{}]}`, "", note("no token is sent"), nil},
		"schemes of others": {sound + `,"securitySchemes":{"m":{"type":"mutualTLS"},"u":{"type":"http","scheme":"basic"},"b":{"type":"http","scheme":"bearer"}},"security":[{"m":[]},{"u":[]},{"b":[],"m":[]},{"x":[]}]}`, "tok",
			fault("card", "the agent's security schemes are not supported: m (mutualTLS), u (http basic), b together with m, x; Parley has bearer tokens and API keys"), nil},
		"a header that is ours":   {sound + `,"securitySchemes":{"k":{"type":"apiKey","in":"header","name":"Host"}},"security":[{"k":[]}]}`, "tok", fault("card", `the agent's security schemes are not supported: k (an API key in the header "Host"); Parley has bearer tokens and API keys`), nil},
		"version 1.0":             {`{"name":"Fake","supportedInterfaces":[{"url":"ADDRESS/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, "", fault("card", "the agent offers only A2A 1.0, and Parley speaks A2A 0.3: let the agent offer 0.3 too"), nil},
		"version 0.2":             {`{"name":"Fake","protocolVersion":"0.2.5","url":"ADDRESS/rpc"}`, "", fault("card", "the agent offers only A2A 0.2.5, and Parley speaks A2A 0.3: let the agent offer 0.3 too"), nil},
		"versions 1.0 and 0.3":    {`{"name":"Fake","protocolVersion":"0.3.0","supportedInterfaces":[{"url":"ADDRESS/1","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"ADDRESS/rpc","protocolBinding":"JSONRPC","protocolVersion":"0.3"}]}`, "", note("no token is sent"), nil},
		"no JSON-RPC":             {`{"name":"Fake","protocolVersion":"0.3.0","url":"ADDRESS/x","preferredTransport":"GRPC","additionalInterfaces":[{"url":"ADDRESS/y","transport":"HTTP+JSON"}]}`, "", fault("card", "the agent offers no JSON-RPC, only GRPC, HTTP+JSON"), nil},
		"JSON-RPC beside another": {`{"name":"Fake","protocolVersion":"0.3.0","url":"ADDRESS/x","preferredTransport":"GRPC","additionalInterfaces":[{"url":"ADDRESS/rpc","transport":"JSONRPC"}]}`, "", note("no token is sent"), nil},
		"no version":              {`{"name":"Fake","url":"ADDRESS/rpc"}`, "", strings.Replace(note("no token is sent"), "0.3.0", "0.3", 1), nil},
		"an address below it":     {`{"name":"Fake","protocolVersion":"0.3.0","url":"/rpc"}`, "", note("no token is sent"), nil},
		"another origin":          {`{"name":"Fake","protocolVersion":"0.3.0","url":"https://elsewhere.test/rpc"}`, "tok", fault("url", "the card names a service at another origin, https://elsewhere.test:443: if it is right, write the service's address as url"), nil},
		"another scheme":          {`{"name":"Fake","protocolVersion":"0.3.0","url":"file:///etc/passwd"}`, "tok", fault("card", "the card names no http or https address of the service"), nil},
		"an extension":            {sound + `,"capabilities":{"extensions":[{"uri":"https://x.test/a"},{"uri":"https://x.test/b","required":true}]}}`, "", fault("card", "the agent needs the extension https://x.test/b, which Parley does not have"), nil},
		"a page":                  {`<html>`, "", fault("card", "the address has no card of an agent: invalid character '<' looking for beginning of value"), nil},
		"an empty object":         {`{}`, "", fault("card", "the card names no address of a service: it is no card of A2A 0.3"), nil},
	} {
		got, request, err := check(t, a2a.Config{Token: secret.New(c.token)}, writes(c.card))
		if err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if asked := request != nil; asked != strings.Contains(c.want, "false:") {
			t.Errorf("%s: the service is asked: %v", name, asked)
		}
		if request != nil && (request.URL.Path != "/rpc" || c.sent != nil && c.sent(request) != "Bearer tok" || c.token == "" && authorization(request) != "") {
			t.Errorf("%s: the service got %s with %v", name, request.URL, request.Header)
		}
	}
}

// TestAnAddressOfItsOwn is asked in place of that of the card.
func TestAnAddressOfItsOwn(t *testing.T) {
	got, request, err := check(t, a2a.Config{URL: "/proxied", Token: secret.New("tok")}, writes(`{"name":"Fake","protocolVersion":"0.3.0","url":"https://elsewhere.test/rpc"}`))
	if err != nil || len(got) != 1 || strings.Contains(got[0], "true:") || request.URL.Path != "/proxied" {
		t.Errorf("%q, %v, %v", got, request, err)
	}
}

// TestCardsThatLie checks addresses that have no card. None of them gets the token, but one that asks for it.
func TestCardsThatLie(t *testing.T) {
	for name, c := range map[string]struct {
		card  http.HandlerFunc
		words string
	}{
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test/card", http.StatusFound)
		}, "redirects are not followed"},
		"a redirect to itself": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "redirects are not followed"},
		"nothing":              {http.NotFound, "404"},
		"a card without end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, `{"name":"`+strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		}, "it is no card of an agent"},
		"a deep card": {writes(`{"name":` + strings.Repeat(`[`, 1<<15)), "no card of an agent"},
	} {
		got, request, err := check(t, a2a.Config{Token: secret.New("long-enough-token")}, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Errorf("%s: got the token", name)
			}
			c.card(w, r)
		})
		if words := fmt.Sprint(got, err); !strings.Contains(words, c.words) || request != nil {
			t.Errorf("%s: %s", name, words)
		}
	}
	got, request, err := check(t, a2a.Config{Token: secret.New("long-enough-token")}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer long-enough-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		cardOf("")(w, r)
	})
	if err != nil || request == nil || len(got) != 1 || strings.Contains(got[0], "true:") {
		t.Errorf("%q, %v, %v", got, request, err)
	}
}

func TestConfig(t *testing.T) {
	kind := a2a.Kind()
	config := kind.Config().(*a2a.Config)
	config.Card, config.URL, config.Token = "agent.test", "ftp://agent.test", secret.New("a\nb")
	var keys []string
	for _, fault := range config.Validate() {
		keys = append(keys, fault.Field)
	}
	if got := strings.Join(keys, " "); got != "card url token" {
		t.Error(got)
	}
	if _, ok := kind.New(config, nil).(agent.Checker); !ok {
		t.Error("it checks nothing")
	}
}
