package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/adapters/agent/remote"
	"parley/config/secret"
	"parley/ingest/event"
)

const (
	// cardAge is the time for which a card is kept.
	cardAge = 5 * time.Minute
	// maxCard bounds a card, in bytes.
	maxCard = 1 << 20
	// maxWord bounds what an error quotes of a card, in characters.
	maxWord = 80
)

// card has the parts of an agent's card that Parley needs.
type card struct {
	url           string // of the service
	scheme        scheme
	name, version string
	modes         []string // media types that the service takes
	// streams, resumes (streams of tasks that work) and pushes are abilities, until the service refuses them.
	streams, resumes, pushes atomic.Bool
}

// cardFault is a fault of a card for the operator, about a key of the settings.
type cardFault struct{ key, words string }

func (f *cardFault) Error() string { return f.words }

func faulty(key, format string, args ...any) error {
	for i := range args {
		if word, ok := args[i].(string); ok {
			args[i] = remote.Plain(word, maxWord)
		}
	}
	return &cardFault{key, fmt.Sprintf(format, args...)}
}

// fetch reads and checks the card. It sends the token only if the card needs it.
func (a *Agent) fetch(ctx context.Context) (*card, error) {
	get := func(token secret.Value) (*remote.Response, error) {
		request, err := a.client.Request(ctx, a.config.Card, "", nil)
		if err != nil {
			return nil, err
		}
		request.Header.Del(remote.RunTokenHeader)
		request.Header.Set("Accept", "application/json")
		bearer.admit(request, token)
		return a.client.Do(request)
	}
	response, err := get(secret.Value{})
	if fault, ok := errors.AsType[*remote.Error](err); ok && fault.Status == http.StatusUnauthorized && !a.config.Token.IsZero() {
		response, err = get(a.config.Token)
	}
	if err != nil {
		return nil, err
	}
	defer response.Close()
	raw, err := a.client.Upto(response, maxCard, ": it is no card of an agent")
	if err != nil {
		return nil, err
	}
	return readCard(raw, a.config)
}

// cardJSON is a card of version 0.3. supportedInterfaces is of version 1.0.
type cardJSON struct {
	Name, Version, URL, ProtocolVersion, PreferredTransport string
	AdditionalInterfaces                                    []struct{ URL, Transport string }
	SupportedInterfaces                                     []struct{ URL, ProtocolBinding, ProtocolVersion string }
	Capabilities                                            struct {
		Streaming, PushNotifications bool
		Extensions                   []struct {
			URI      string
			Required bool
		}
	}
	DefaultInputModes []string
	Security          []json.RawMessage
	SecuritySchemes   json.RawMessage
}

const jsonRPC = "JSONRPC"

// readCard reads a card for the service of the settings.
func readCard(raw []byte, config Config) (*card, error) {
	var c cardJSON
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, faulty("card", "the address has no card of an agent: %v", err.Error())
	}
	addresses, err := c.services()
	if err != nil {
		return nil, err
	}
	found := &card{name: remote.Plain(c.Name, maxWord), version: remote.Plain(c.ProtocolVersion, maxWord), modes: c.DefaultInputModes}
	if found.url, err = choose(addresses, config); err != nil {
		return nil, err
	}
	for _, extension := range c.Capabilities.Extensions {
		if extension.Required {
			return nil, faulty("card", "the agent needs the extension %s, which Parley does not have", extension.URI)
		}
	}
	if found.scheme, err = c.scheme(!config.Token.IsZero()); err != nil {
		return nil, err
	}
	found.streams.Store(c.Capabilities.Streaming)
	found.resumes.Store(c.Capabilities.Streaming)
	found.pushes.Store(c.Capabilities.PushNotifications)
	return found, nil
}

// services returns the addresses at which the agent speaks JSON-RPC of version 0.3, the preferred one first.
func (c *cardJSON) services() (addresses []string, err error) {
	is03 := func(version string) bool { return version == "0.3" || strings.HasPrefix(version, "0.3.") }
	var others, transports []string
	add := func(transport, address string) {
		if address == "" {
			return
		}
		if transport = cmp.Or(transport, jsonRPC); strings.EqualFold(transport, jsonRPC) {
			addresses = append(addresses, address)
		}
		transports = append(transports, transport)
	}
	if is03(c.ProtocolVersion) || c.ProtocolVersion == "" && c.URL != "" && len(c.SupportedInterfaces) == 0 {
		add(c.PreferredTransport, c.URL)
		for _, i := range c.AdditionalInterfaces {
			add(i.Transport, i.URL)
		}
	} else if c.ProtocolVersion != "" {
		others = append(others, c.ProtocolVersion)
	}
	for _, i := range c.SupportedInterfaces {
		if is03(i.ProtocolVersion) {
			add(i.ProtocolBinding, i.URL)
		} else {
			others = append(others, cmp.Or(i.ProtocolVersion, "1.0"))
		}
	}
	slices.Sort(others)
	switch others = slices.Compact(others); {
	case len(addresses) > 0:
		return addresses, nil
	case len(transports) > 0:
		return nil, faulty("card", "the agent offers no JSON-RPC, only %s", strings.Join(transports, ", "))
	case len(others) > 0:
		return nil, faulty("card", "the agent offers only A2A %s, and Parley speaks A2A 0.3: let the agent offer 0.3 too", strings.Join(others, ", "))
	}
	return nil, faulty("card", "the card names no address of a service: it is no card of A2A 0.3")
}

// choose returns the first address whose origin is that of the card. The setting url is the address instead, if there is one.
func choose(addresses []string, config Config) (string, error) {
	if config.URL != "" {
		return config.URL, nil
	}
	base, _ := adapters.ParseAddress(config.Card)
	other := ""
	for _, address := range addresses {
		to, err := base.Parse(address)
		if err != nil || to.User != nil || to.Scheme != "http" && to.Scheme != "https" {
			continue
		}
		if originOf(to) == originOf(base) {
			return to.String(), nil
		}
		other = cmp.Or(other, originOf(to))
	}
	if other == "" {
		return "", faulty("card", "the card names no http or https address of the service")
	}
	return "", faulty("url", "the card names a service at another origin, %s: if it is right, write the service's address as url", other)
}

// originOf returns the scheme, host and port of an address.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// scheme is the place of the token in a request.
type scheme struct{ in, name string }

var bearer = scheme{in: "bearer"}

// words names the scheme for an operator.
func (s scheme) words() string {
	switch s.in {
	case "":
		return "no token is sent"
	case "bearer":
		return "the token is sent as a bearer token"
	}
	return fmt.Sprintf("the token is sent in the %s %s", s.in, s.name)
}

// admit adds the token to a request.
func (s scheme) admit(r *http.Request, token secret.Value) {
	value := strings.TrimSpace(token.Reveal())
	if value == "" {
		return
	}
	switch s.in {
	case "bearer":
		r.Header.Set("Authorization", "Bearer "+value)
	case "header":
		r.Header.Set(s.name, value)
	case "cookie":
		r.AddCookie(&http.Cookie{Name: s.name, Value: value})
	case "query":
		query := r.URL.Query()
		query.Set(s.name, value)
		r.URL.RawQuery = query.Encode()
	}
}

// taken are headers of a request that no card can claim.
var taken = []string{"accept", "connection", "content-length", "content-type", "cookie", "expect", "host", "idempotency-key", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "x-parley-run-token", "x-request-id"}

// readScheme reads a security scheme. Its words name one that Parley does not have.
func readScheme(raw json.RawMessage) (s scheme, words string) {
	var given struct{ Type, Scheme, In, Name string }
	if json.Unmarshal(raw, &given) != nil || given.Type == "" {
		return s, "of a form that A2A 0.3 does not have"
	}
	switch {
	case given.Type == "http" && strings.EqualFold(given.Scheme, "bearer"), given.Type == "oauth2", given.Type == "openIdConnect":
		return bearer, ""
	case given.Type == "http":
		return s, "http " + given.Scheme
	case given.Type != "apiKey":
		return s, given.Type
	case !slices.Contains([]string{"header", "query", "cookie"}, given.In) || !isName(given.Name) || given.In == "header" && slices.Contains(taken, strings.ToLower(given.Name)):
		return s, fmt.Sprintf("an API key in the %s %q", given.In, remote.Plain(given.Name, maxWord))
	}
	return scheme{given.In, given.Name}, ""
}

func isName(name string) bool {
	return name != "" && len(name) <= maxWord && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// scheme returns the first of the card's security schemes that the token meets. A card that names none gets a bearer token.
func (c *cardJSON) scheme(hasToken bool) (scheme, error) {
	schemes, err := event.ReadObject(c.SecuritySchemes)
	if err != nil && len(c.SecuritySchemes) > 0 && string(c.SecuritySchemes) != "null" {
		return scheme{}, faulty("card", "the card's securitySchemes are no object")
	}
	var first *scheme
	var named string // first's name
	var unmet []string
	meet := func(name string) {
		i := slices.IndexFunc(schemes, func(e event.Extra) bool { return e.Key == name })
		if i < 0 {
			unmet = append(unmet, name)
			return
		}
		found, words := readScheme(json.RawMessage(schemes[i].Value))
		switch {
		case words != "":
			unmet = append(unmet, fmt.Sprintf("%s (%s)", name, words))
		case first == nil:
			first, named = &found, name
		}
	}
	free := len(c.Security) == 0
	for _, raw := range c.Security {
		needs, err := event.ReadObject(raw)
		switch {
		case err != nil:
			return scheme{}, faulty("card", "the card's security is no list of objects")
		case len(needs) == 0:
			free = true
		case len(needs) == 1:
			meet(needs[0].Key)
		default:
			unmet = append(unmet, fmt.Sprintf("%s together with %s", needs[0].Key, needs[1].Key))
		}
	}
	if free && hasToken && first == nil {
		for _, e := range schemes {
			meet(e.Key)
		}
	}
	switch {
	case first != nil && hasToken:
		return *first, nil
	case free && !hasToken:
		return scheme{}, nil
	case first != nil:
		return scheme{}, faulty("token", "is required: the agent takes only requests with a token (its security scheme is %s)", named)
	case len(unmet) == 0:
		return bearer, nil
	}
	return scheme{}, faulty("card", "the agent's security schemes are not supported: %s; Parley has bearer tokens and API keys", strings.Join(unmet, ", "))
}
