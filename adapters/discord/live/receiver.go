package live

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/memory"
	"parley/config/secret"
)

// Receiver receives the events of one bot from the gateway. It is safe for concurrent use.
type Receiver struct {
	Limits Limits // of the gateway

	client    *call.Client
	memory    *memory.Memory
	workspace string
	settings  Settings
	warn      func(context.Context, adapters.Link)
	warned    sync.Once
}

// Settings are the settings of a receiver.
type Settings struct {
	Token    secret.Value // authorizes the shards
	Shards   int          // number of shards; 0 takes the number that Discord recommends
	Commands bool         // registers the commands
}

// New returns a receiver that makes its calls by a client. It calls warn once, in the background,
// when a session of the shard 0 begins or goes on while the policy lets any server use the bot.
func New(c *call.Client, m *memory.Memory, workspace string, settings Settings, warn func(context.Context, adapters.Link)) *Receiver {
	return &Receiver{Limits: defaultLimits(), client: c, memory: m, workspace: workspace, settings: settings, warn: warn}
}

// Limits are the limits of the gateway.
type Limits struct {
	Open                   time.Duration // the websocket's handshake, the hello, and the answer to our identify or resume
	Write                  time.Duration // one frame of ours
	CloseWait              time.Duration // the write of our close
	IdentifyEvery          time.Duration // between two identifies of one rate-limit key
	InvalidMin, InvalidMax time.Duration // the wait after op 9 false
	BackoffMin, BackoffMax time.Duration // the longest wait after the first failure, and after many
	DownAfter              time.Duration // without a session, after which the shard is down
	Silence                float64       // heartbeat intervals without an acknowledgement after which a connection is dead
	// Look bounds how long a response to a command waits for the decision of the policy. Discord
	// expects the response within 3 s.
	Look time.Duration
	// Waiting bounds the bodies of the events that wait for the store, in bytes. Beyond it the
	// connection ends, and its session is resumed when the store has taken them.
	Waiting int
}

func defaultLimits() Limits {
	return Limits{
		Open: 10 * time.Second, Write: 5 * time.Second, CloseWait: 500 * time.Millisecond, IdentifyEvery: 5 * time.Second,
		InvalidMin: time.Second, InvalidMax: 5 * time.Second, BackoffMin: time.Second, BackoffMax: time.Minute,
		DownAfter: 30 * time.Second, Silence: 1.5, Look: time.Second, Waiting: 64 << 20,
	}
}

// Connections returns a connection for each configured shard, or one that consists of the shards
// which Discord recommends.
func (rc *Receiver) Connections() (all []adapters.Connection) {
	if rc.settings.Shards == 0 {
		return []adapters.Connection{{Name: "shards", Split: rc.recommended}}
	}
	return rc.shards(rc.settings.Shards)
}

// recommended returns as many shards as Discord recommends.
func (rc *Receiver) recommended(ctx context.Context) ([]adapters.Connection, error) {
	answer, err := rc.askGateway(ctx)
	if err != nil {
		return nil, err
	}
	return rc.shards(max(answer.Shards, 1)), nil
}

// shards returns a connection for each shard.
func (rc *Receiver) shards(count int) (all []adapters.Connection) {
	for id := range count {
		all = append(all, adapters.Connection{Name: "shard-" + strconv.Itoa(id), Exclusive: true, Run: func(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
			return rc.newShard(id, count, inbox, link).run(ctx)
		}})
	}
	return all
}

func (rc *Receiver) newShard(id, count int, inbox adapters.Inbox, link adapters.Link) *shard {
	s := &shard{Receiver: rc, id: id, count: count, link: link, lost: time.Now()}
	s.accepts = &accepts{shard: s, inbox: inbox, changed: make(chan struct{})}
	return s
}

// askGateway calls GET /gateway/bot.
// https://docs.discord.com/developers/events/gateway#get-gateway-bot
func (rc *Receiver) askGateway(ctx context.Context) (answer discordgo.GatewayBotResponse, err error) {
	if err = rc.client.Get(ctx, "/gateway/bot", &answer); err != nil {
		return answer, call.MarkRefused(fmt.Errorf("ask discord for the gateway: %w", err))
	}
	return answer, nil
}
