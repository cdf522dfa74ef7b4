package payload

import (
	"encoding/json"
)

// Server is the value of a server in the workspace's state.
type Server struct {
	Role     string   `json:"role"` // the bot's own role
	Channels []string `json:"channels"`
}

// ReadServer reads a value of the state. An unreadable value names no role and no channel.
func ReadServer(value string) (known Server) {
	_ = json.Unmarshal([]byte(value), &known)
	return known
}

// ServerStateName is the name of a server in the state.
func ServerStateName(id string) string { return "guild/" + id }
