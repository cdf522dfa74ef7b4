package read

import (
	"net/http"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/memory"
	"parley/adapters/httpcall"
)

// Reader reads the history, the files and the names of one workspace. It is safe for concurrent use.
type Reader struct {
	// ServersWait is the longest wait of Channels for the next server of a new session.
	ServersWait time.Duration

	client    *call.Client
	memory    *memory.Memory
	workspace string // its name in thread keys
	files     *http.Client
	names     *adapters.Names         // of fetched messages' authors
	roles     adapters.Kept[[]string] // of people, by the servers and the user
	guilds    sync.Map                // the servers of channels whose links were asked for, by channel
}

// New returns a reader that makes its calls by a client.
func New(c *call.Client, m *memory.Memory, workspace string) *Reader {
	r := &Reader{
		ServersWait: 5 * time.Second, client: c, memory: m, workspace: workspace,
		files: httpcall.NewFileClient(c.Transport, c.Base, "the address is not discord's", fileHosts...),
	}
	r.names = adapters.NewNames(r)
	return r
}
