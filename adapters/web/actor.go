package web

import (
	"regexp"
	"strings"
)

// Actor is a caller of the documents' routes: "user:<uuid>" or "agent:<uuid>". It is the
// sender of the caller's messages there, and a user owns the threads that it makes.
type Actor string

var actorForm = regexp.MustCompile(`^(user|agent):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsValid reports whether the actor has one of the two forms, in lower case.
func (a Actor) IsValid() bool { return actorForm.MatchString(string(a)) }

func (a Actor) lower() Actor { return Actor(strings.ToLower(string(a))) }

// IsAgent reports whether the actor is an agent outside Parley.
func (a Actor) IsAgent() bool { return strings.HasPrefix(string(a), "agent:") }

// actor returns the actor of a workspace's token. One that is not configured is the user with
// the UUIDv5 of "parley:token:<workspace>:<token id>" in the URL namespace.
func (t *Token) actor(workspace string) Actor {
	if t.Actor != "" {
		return t.Actor
	}
	return Actor("user:" + urlUUID("token:"+workspace+":"+t.ID))
}
