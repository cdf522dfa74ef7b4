// Package access decides who may call the HTTP API: it has the callers, their tokens, signed tokens and
// tickets, the origins of pages, and the identity that a caller gives its messages.
package access

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/adapters"
	"parley/adapters/web/payload"
	"parley/config/secret"
	"parley/ingest/event"
)

// The values of Token.Senders: the identities that a token's holder may use.
const (
	SendersOwn = "own" // only the token's own
	SendersAny = "any" // any in the metadata; for an integration
)

// Config is the configuration of a workspace on Parley's own HTTP API. DefaultConfig returns
// the defaults.
type Config struct {
	Tokens []Token `yaml:"tokens"`
	// Origins are the origins whose pages may call the API in a browser, such as
	// https://app.example.com.
	Origins []string `yaml:"origins"`
	// JWT admits users by signed tokens, beside Tokens.
	JWT JWT `yaml:"jwt"`
	// Local marks the built-in workspace. Its one token may omit the metadata and set any.
	Local bool `yaml:"-"`
}

// Token admits one caller.
type Token struct {
	// ID identifies the token. With SendersOwn, its messages have the sender_id "web:<id>".
	ID string `yaml:"id"`
	// Token is the secret that the caller sends as a bearer token.
	Token secret.Value `yaml:"token"`
	// Name is the display name of the messages of SendersOwn.
	Name string `yaml:"name"`
	// Senders is SendersOwn, which is the default, or SendersAny.
	Senders string `yaml:"senders"`
	// Instructions says whether the system messages of the caller's runs are instructions like
	// the operator's: true or false; if it is empty, only those of SendersAny are. Others reach the
	// agent in a block that names their author.
	Instructions adapters.Switch `yaml:"instructions"`
	// Read are the ids of further workspaces whose threads the caller may list and read.
	Read []string `yaml:"read"`
	// Posts are the places where the caller may speak first: W is a workspace, W:CHANNEL one of its channels.
	Posts []string `yaml:"posts"`
	// Injects are the ids of the workspaces into which the caller may put messages in the name of others.
	Injects []string `yaml:"injects"`
	// Deliver is the address to which the answers to those messages go.
	Deliver Deliver `yaml:"deliver"`
	// Actor is the caller on the documents' routes; empty for a user of the token's own.
	Actor payload.Actor `yaml:"actor"`
}

// Deliver is an address of the caller.
type Deliver struct {
	URL string `yaml:"url"`
	// Secret signs the requests.
	Secret secret.Value `yaml:"secret"`
}

// isSet reports whether the caller has an address.
func (d *Deliver) isSet() bool { return d.URL != "" || !d.Secret.IsZero() }

// DeliverOf returns the address of the token with an id; false if it has none.
func (c Config) DeliverOf(id string) (Deliver, bool) {
	i := slices.IndexFunc(c.Tokens, func(t Token) bool { return t.ID == id })
	if i < 0 {
		return Deliver{}, false
	}
	return c.Tokens[i].Deliver, c.Tokens[i].Deliver.isSet()
}

// Reads reports whether the token with an id has the right to read a workspace that is not its own.
func (c Config) Reads(id, workspace string) bool {
	return slices.ContainsFunc(c.Tokens, func(t Token) bool { return t.ID == id && slices.Contains(t.Read, workspace) })
}

// DeliversTo returns the id of the token whose address gets the answers to a sender's messages in the workspace; false for none.
func (c Config) DeliversTo(workspace, sender string) (id string, ok bool) {
	for _, t := range c.Tokens {
		if t.Deliver.isSet() && t.isHolder(workspace, sender) {
			return t.ID, true
		}
	}
	return "", false
}

// ActorOf returns the actor of the token to whose holder a sender_id of the workspace belongs; false for none.
func (c Config) ActorOf(workspace, sender string) (payload.Actor, bool) {
	for _, t := range c.Tokens {
		if t.isHolder(workspace, sender) {
			return t.ActorIn(workspace), true
		}
	}
	return "", false
}

// LocalConfig returns the configuration of the built-in workspace with its token.
func LocalConfig(token secret.Value) *Config {
	return &Config{Local: true, Tokens: []Token{{ID: "local", Name: "You", Token: token}}}
}

// Instructs reports whether the system messages of the token's runs are instructions.
func (t *Token) Instructs() bool {
	return t.Instructions == adapters.On || t.Instructions == "" && t.Senders == SendersAny
}

// DefaultConfig returns the defaults: no tokens, so every request is refused.
func DefaultConfig() Config { return Config{} }

var tokenID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

var workspaceID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// Accounts implements adapters.Config. The routes of the documents name no workspace, so a token
// belongs to one. Validate reports a token that a workspace has twice.
func (c Config) Accounts() (accounts []adapters.Account) {
	for i, token := range c.Tokens {
		if !slices.ContainsFunc(c.Tokens[:i], func(t Token) bool { return t.Token.Equal(token.Token.Reveal()) }) {
			accounts = append(accounts, adapters.Account{Key: "tokens", Value: token.Token.Reveal(), Words: "each workspace needs tokens of its own, because a token names its workspace"})
		}
	}
	if by := c.JWT; by != (JWT{}) {
		accounts = append(accounts, adapters.Account{Key: "jwt.audience", Value: by.Issuer + "\n" + by.Audience, Words: "each workspace needs an audience of its own, because it names the workspace"})
	}
	return accounts
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	if len(c.Tokens) == 0 && c.JWT == (JWT{}) {
		faults = append(faults, event.FieldError{Field: "tokens", Message: "must contain at least one token: without a token every request is refused"})
	}
	faults = append(faults, c.JWT.validate()...)
	for i, origin := range c.Origins {
		faults.Check(isOrigin(origin), fmt.Sprintf("origins[%d]", i), "must be an origin such as https://app.example.com, in lower case and without a path")
	}
	for i, token := range c.Tokens {
		for _, fault := range token.validate(c.Tokens[:i]) {
			fault.Field = fmt.Sprintf("tokens[%d].%s", i, fault.Field)
			faults = append(faults, fault)
		}
	}
	return faults
}

// validate checks one token. before contains the tokens above it in the configuration.
func (t Token) validate(before []Token) event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(tokenID.MatchString(t.ID), "id", "must be 1 to 64 letters, digits or . _ @ - and begin with a letter or digit")
	check(!t.Token.IsWeak(secret.MinLength), "token", "must be a random word of at least 24 characters, which the caller sends as its bearer token")
	check(strings.TrimSpace(t.Name) != "", "name", "is required: the display name of messages sent by this token")
	check(t.Senders == "" || t.Senders == SendersOwn || t.Senders == SendersAny, "senders", "must be own or any")
	check(t.Instructions == "" || t.Instructions == adapters.On || t.Instructions == adapters.Off, "instructions", "must be true or false")
	check(t.Actor == "" || t.Actor.IsValid(), "actor", "must be user:<uuid> or agent:<uuid>, in lower case")
	for i, id := range t.Read {
		check(workspaceID.MatchString(id), fmt.Sprintf("read[%d]", i), "must be the id of a workspace")
	}
	check(len(t.Posts) == 0 || !t.Actor.IsAgent(), "posts", "must be left out: the token of an agent may not post")
	for i, place := range t.Posts {
		check(IsPlace(place), fmt.Sprintf("posts[%d]", i), "must be the id of a workspace, or id:channel")
	}
	check(len(t.Injects) == 0 || !t.Actor.IsAgent(), "injects", "must be left out: the token of an agent may not inject messages")
	for i, id := range t.Injects {
		check(workspaceID.MatchString(id), fmt.Sprintf("injects[%d]", i), "must be the id of a workspace")
	}
	if t.Deliver.isSet() {
		_, isAddress := adapters.ParseAddress(t.Deliver.URL)
		check(isAddress, "deliver.url", "must be an http or https address without credentials")
		check(!t.Deliver.Secret.IsWeak(secret.MinLength), "deliver.secret", "must be a random word of at least 24 characters, which signs the requests")
	}
	for i, other := range before {
		check(t.ID == "" || t.ID != other.ID, "id", fmt.Sprintf("is also the id of tokens[%d]: each token needs its own id", i))
		check(!t.Token.Equal(other.Token.Reveal()), "token", fmt.Sprintf("is also the token of tokens[%d]: the two callers could not be told apart", i))
	}
	return faults
}

// IsPlace reports whether a text has the form of a place to post: W is a workspace, W:CHANNEL one of its channels.
func IsPlace(text string) bool {
	id, channel, one := strings.Cut(text, ":")
	return workspaceID.MatchString(id) && (channel != "" || !one)
}

// Posting returns the workspaces in which the token's holder may speak first somewhere, one for each of Posts.
func (t *Token) Posting() (workspaces []string) {
	for _, place := range t.Posts {
		id, _, _ := strings.Cut(place, ":")
		workspaces = append(workspaces, id)
	}
	return workspaces
}

// MayPost reports whether the token's holder may speak first in a channel of a workspace.
func (t *Token) MayPost(workspace, channel string) bool {
	return slices.Contains(t.Posts, workspace) || slices.Contains(t.Posts, workspace+":"+channel)
}

// ActorIn returns the actor of a workspace's token. One that is not configured is the user with
// the UUIDv5 of "parley:token:<workspace>:<token id>" in the URL namespace.
func (t *Token) ActorIn(workspace string) payload.Actor {
	if t.Actor != "" {
		return t.Actor
	}
	return payload.Actor("user:" + payload.UUIDOf("token:"+workspace+":"+t.ID))
}
