package assembly

import (
	"slices"
	"strings"
)

// Speakers are the names of a thread's authors, as the agent reads them.
type Speakers struct {
	// Agent is the agent's own name.
	Agent string
	// Account returns the name of the agent's account on the platform; empty if it is unknown. It may ask the
	// platform. Nil without an account.
	Account func() string
	// Headers are the headers of the other authors of the turns, such as "[Olivia (<@U06>)]:".
	Headers []string
	// People are the other authors with a mention token and a unique name, in any case.
	People []Name
}

// FindSpeakers returns the authors of the turns. The arguments are those of Assemble.
func FindSpeakers(agent string, turns []Turn, mentions Mentions, others ...string) Speakers {
	names := naming{clean(agent), mentions, others}
	s, people := Speakers{Agent: names.agent}, []Name(nil)
	for _, t := range turns {
		v := view{Turn: t}
		v.each(func(l *Line) {
			if l.Own || l.Version == 0 {
				return
			}
			if header := names.attribute(l, ""); !slices.Contains(s.Headers, header) {
				s.Headers = append(s.Headers, header)
				if token := names.mention(&l.Metadata); token != "" && !l.Parley {
					people = append(people, Name{token, NameOf(&l.Metadata)})
				}
			}
		})
	}
	for i, p := range people {
		isAnother := func(o Name) bool { return strings.EqualFold(o.Name, p.Name) && o.Token != p.Token }
		isSame := func(o Name) bool { return strings.EqualFold(o.Name, p.Name) }
		if !slices.ContainsFunc(people, isAnother) && !slices.ContainsFunc(people[:i], isSame) {
			s.People = append(s.People, p)
		}
	}
	return s
}

// AccountName returns the name of the agent's account as a header has it; empty if it is unknown.
func (s Speakers) AccountName() string {
	if s.Account == nil {
		return ""
	}
	return clean(s.Account())
}
