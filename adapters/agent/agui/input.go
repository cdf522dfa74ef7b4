package agui

import (
	"parley/adapters/agent/remote"
	"parley/assembly"
)

// runInput is a RunAgentInput. Tools, context, state and forwardedProps are always sent, also
// if they are empty, because older endpoints require them.
type runInput struct {
	ThreadID       string     `json:"threadId"`
	RunID          string     `json:"runId"`
	State          struct{}   `json:"state"`
	Messages       []message  `json:"messages"`
	Tools          []struct{} `json:"tools"`
	Context        []struct{} `json:"context"`
	ForwardedProps struct{}   `json:"forwardedProps"`
}

// message is one message. Its content is a string, or []any if it has images.
type message struct {
	ID      string        `json:"id"`
	Role    assembly.Role `json:"role"`
	Content any           `json:"content"`
}

func (a *Agent) input(input assembly.Input) runInput {
	out := runInput{
		ThreadID: input.ThreadID, RunID: input.RunID,
		Messages: make([]message, 0, len(input.Messages)+1), Tools: []struct{}{}, Context: []struct{}{},
	}
	if a.config.SystemPrompt != "" {
		out.Messages = append(out.Messages, message{"system", assembly.RoleSystem, a.config.SystemPrompt})
	}
	for _, m := range input.Messages {
		out.Messages = append(out.Messages, message{m.ID, m.Role, remote.Text(m)})
	}
	return out
}
