package a2a

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"parley/adapters"
	"parley/adapters/agent/remote"
)

// Check implements agent.Checker. It reads the card, and asks for a task that does not exist: a service that takes the token
// answers with an error of JSON-RPC.
func (a *Agent) Check(ctx context.Context) ([]adapters.Finding, error) {
	keys := remote.Keys{Address: "card", Secret: "token", Model: "card"}
	found, err := a.fetch(ctx)
	if fault, ok := errors.AsType[*cardFault](err); ok {
		return []adapters.Finding{{Key: fault.key, Words: "the agent can't answer: " + fault.words, Fault: true}}, nil
	}
	if err != nil {
		return keys.Judge(err)
	}
	if a.config.URL != "" {
		keys.Address, keys.Model = "url", "url"
	}
	response, err := a.call(ctx, found, "tasks/get", "", taskQuery{"00000000-0000-0000-0000-000000000000"}, nil)
	if err == nil {
		response.Close()
	} else if findings, err := keys.Judge(err); findings != nil {
		return findings, err
	} else if fault, ok := errors.AsType[*remote.Error](err); !ok || fault.Status == 0 || fault.Status >= 500 {
		return nil, err
	}
	can := func(able bool) string {
		if able {
			return "yes"
		}
		return "no"
	}
	return []adapters.Finding{{Key: "card", Note: true, Words: fmt.Sprintf("the agent %q speaks A2A %s over JSON-RPC (streams: %s, push notifications: %s); %s",
		found.name, cmp.Or(found.version, "0.3"), can(found.streams.Load()), can(found.pushes.Load()), found.scheme.words())}}, nil
}
