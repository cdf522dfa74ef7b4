package console

import (
	"cmp"

	"parley/cmd/parley/internal/operator"
	"parley/ingest"
)

// paused is a pause with the operation that ends it.
type paused struct {
	ingest.Pause
	Act act
}

// pauseAct is the operation that pauses a scope.
func pauseAct(r request) act {
	return newAct(r.isOperator(), "pause", "/pauses", "Pause", "Nobody can ask an agent in the scope. Messages are kept as context, and askers are told once.", []field{
		newField("scope", "Scope: WORKSPACE, WORKSPACE:CHANNEL or agent:ID; empty for everything", false), newField("for", "For, such as 2h; empty until it is resumed", false),
		newField("say", "What askers are told (optional)", false),
	})
}

func pausesOf(r request, list []ingest.Pause) (pauses []paused) {
	for _, p := range list {
		scope := field{Name: "scope", Value: p.Scope, Hidden: true}
		pauses = append(pauses, paused{p, newAct(r.isOperator(), "resume", "/pauses/end", "Resume", "People can ask there again.", []field{scope})})
	}
	return pauses
}

func pauseScope(s *operator.Service, f form) (string, error) {
	made, err := s.Pause(f.Context(), f.write(), operator.NewPause{Scope: f.PostFormValue("scope"), For: f.PostFormValue("for"), Say: f.PostFormValue("say")})
	return cmp.Or(made.Scope, "Everything") + " is paused.", err
}

func resumeScope(s *operator.Service, f form) (string, error) {
	ended, err := s.Resume(f.Context(), f.write(), f.PostFormValue("scope"))
	return cmp.Or(ended.Scope, "Everything") + " is resumed.", err
}
