package payload

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Actor is a caller of the documents' routes: "user:<uuid>" or "agent:<uuid>". It is the
// sender of the caller's messages there, and a user owns the threads that it makes.
type Actor string

var actorForm = regexp.MustCompile(`^(user|agent):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsValid reports whether the actor has one of the two forms, in lower case.
func (a Actor) IsValid() bool { return actorForm.MatchString(string(a)) }

// Lower returns the actor in lower case, which is its one valid spelling.
func (a Actor) Lower() Actor { return Actor(strings.ToLower(string(a))) }

// IsAgent reports whether the actor is an agent outside Parley.
func (a Actor) IsAgent() bool { return strings.HasPrefix(string(a), "agent:") }

// AgentActor returns the actor of an agent of ours.
func AgentActor(id string) Actor { return Actor("agent:" + UUIDOf("agent:"+id)) }

// NoActor is the fault of a text that is no actor.
const NoActor = "must be user:<uuid> or agent:<uuid>"

// ReadActors reads a list of at most a number of actors. It returns the fault's text, or "".
func ReadActors(value json.RawMessage, into *[]Actor, most int) string {
	if json.Unmarshal(value, into) != nil {
		return `must be a list such as ["user:6ba7b810-9dad-41d1-80b4-00c04fd430c8"]`
	}
	if len(*into) > most {
		return fmt.Sprintf("must be at most %d", most)
	}
	for i, m := range *into {
		if (*into)[i] = m.Lower(); !m.Lower().IsValid() {
			return fmt.Sprintf("[%d] %s", i, NoActor)
		}
	}
	return ""
}
