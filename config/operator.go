package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"parley/adapters"
	"parley/config/secret"
	"parley/ingest/event"
)

// Role is the set of rights of an operator. Each role has the rights of the ones before it.
type Role string

// The roles, the one with the fewest rights first.
const (
	// RoleViewer sees states, counts and errors, and no text of a direct message.
	RoleViewer Role = "viewer"
	// RoleReader also reads every text that is stored.
	RoleReader Role = "reader"
	// RoleOperator also changes what is stored.
	RoleOperator Role = "operator"
)

var roles = []Role{RoleViewer, RoleReader, RoleOperator}

// Has reports whether the role has the rights of another one. An unknown role has none.
func (r Role) Has(other Role) bool {
	return slices.Contains(roles, r) && slices.Index(roles, r) >= slices.Index(roles, other)
}

// Operator admits a person, or a program, to the operator API.
type Operator struct {
	ID string `yaml:"id"`
	// Token is the secret that the caller sends as a bearer token.
	Token secret.Value `yaml:"token"`
	Role  Role         `yaml:"role"`
}

// SocketOperator is the id of everybody who comes over the operator API's socket, in the audit and in
// approvers. No configured operator has it.
const SocketOperator = "local"

// OperatorAPI is where the operator API is reached, besides its socket.
type OperatorAPI struct {
	// Listen is host:port of a listener whose callers need the token of an operator. It is empty
	// for none.
	Listen string `yaml:"listen"`
	// Dir is the folder of the socket if the store is no file.
	Dir string `yaml:"dir"`
}

// Console is where people reach the console in a browser.
type Console struct {
	// Listen is host:port of the console's own listener. It is empty for none.
	Listen string `yaml:"listen"`
	// PublicURL is the address under which a proxy serves the console; empty for no proxy.
	PublicURL string `yaml:"public_url"`
}

// socketName is the name of the operator API's socket.
const socketName = "parley.sock"

// Socket returns the path of the operator API's socket: beside the file of the store, or in
// operator.dir if the store is no file.
func (c *Config) Socket() string {
	if c.Store.Engine == SQLite {
		return filepath.Join(filepath.Dir(c.Store.Path), socketName)
	}
	return filepath.Join(c.OperatorAPI.Dir, socketName)
}

// operatorFaults returns the faults of the operators and of the operator API.
func (c *Config) operatorFaults() event.FieldErrors {
	var check checks
	api := c.OperatorAPI
	check.require(api.Listen == "" || isListen(api.Listen), "operator.listen", "must be host:port, such as 127.0.0.1:8486, or empty")
	check.require(api.Listen == "" || !isListen(api.Listen) || isLoopback(api.Listen) || len(c.Operators) > 0, "operator.listen",
		"is an address that other machines reach, and there are no operators: add operators with tokens, or listen on 127.0.0.1")
	check.require(api.Dir != "", "operator.dir", "must be a folder")
	page := c.Console
	check.require(page.Listen == "" || isListen(page.Listen), "console.listen", "must be host:port, such as 127.0.0.1:8485, or empty")
	check.require(page.Listen == "" || !isListen(page.Listen) || isLoopback(page.Listen) || len(c.Operators) > 0, "console.listen",
		"is an address that other machines reach, and there are no operators: add operators with tokens, or listen on 127.0.0.1")
	check.require(page.PublicURL == "" || adapters.IsBase(page.PublicURL), "console.public_url", "must be an http or https address without credentials, or empty")
	ids := unique{}
	for i, o := range c.Operators {
		at := fmt.Sprintf("operators[%d]", i)
		check.require(idForm.MatchString(o.ID), at+".id", idWords)
		check.require(o.ID != SocketOperator, at+".id", "is the id of everybody who comes over the socket: choose another one")
		before := ids.add(o.ID, at)
		check.require(before == "", at+".id", "is also the id of "+before+": give each operator its own id")
		check.require(!o.Token.IsWeak(secret.MinLength), at+".token", "must be a random word of at least 24 characters")
		same := slices.IndexFunc(c.Operators[:i], func(other Operator) bool { return other.Token.Equal(o.Token.Reveal()) })
		check.require(same < 0, at+".token", fmt.Sprintf("is also the token of operators[%d]: give each operator its own token", same))
		check.oneOf(at+".role", string(o.Role), string(RoleViewer), string(RoleReader), string(RoleOperator))
	}
	return check.faults
}
