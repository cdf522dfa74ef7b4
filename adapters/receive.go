package adapters

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"parley/adapters/guard"
	"parley/ingest/event"
)

// Inbox accepts envelopes durably. Adapters call it concurrently.
type Inbox interface {
	// Accept returns after the envelope is durable. Only then may the adapter acknowledge
	// it to the platform. Accept waits at most two seconds, and then fails with ErrBusy.
	Accept(ctx context.Context, envelope event.Envelope) (Receipt, error)
}

// Receipt is the result of a durable accept.
type Receipt struct {
	ID int64
	// MessageUUID is the UUID of the message that the envelope makes.
	MessageUUID string
	// Thread is the thread that the payload names; empty if it names only a message.
	Thread event.ThreadKey
	// Duplicate reports that the same payload was accepted before.
	Duplicate bool
	// Waits reports that the envelope is about a message that is not known yet.
	Waits bool
}

// ErrBusy means that the store cannot accept the envelope now. The adapter must not
// acknowledge it, so that the platform sends it again.
var ErrBusy = errors.New("the store cannot accept the message now")

// Results is an Inbox that knows the results of envelopes.
type Results interface {
	// Runs waits for an envelope's result, and reports whether it triggers a run or is a chat
	// command, so that an answer follows. known is false if ctx ends first.
	Runs(ctx context.Context, envelope int64) (runs, known bool)
}

// Connector is an adapter with connections, or with another task that runs all the time.
type Connector interface {
	// Connections returns the adapter's connections. It is called once. The supervisor
	// runs each of them on its own.
	Connections() []Connection
}

// Connection is one connection of an adapter to its platform: a gateway session, a set of
// sockets, or a poller.
type Connection struct {
	// Name distinguishes the connection from the adapter's others; the only one needs none.
	Name string
	// Exclusive says that only one node at a time may run the connection, however many
	// nodes share the store. Then Run must close it before it returns, and must return
	// within a second after its ctx ends, because another node may connect soon after
	// that. If Run returns for another reason, another node may run next. So Run should
	// handle a platform's everyday events by itself, such as a request to reconnect.
	Exclusive bool
	// Run hands the envelopes of the connection to inbox, and reports its state through
	// link. It may repair a broken connection without returning. It returns when ctx
	// ends. After an error that is not a *RefusedError, the supervisor calls Run again,
	// with backoff.
	Run func(ctx context.Context, inbox Inbox, link Link) error
	// Split replaces Run if only the platform knows of which connections this one consists:
	// it asks the platform for them. Each of them then runs on its own. Its errors are those
	// of Run.
	Split func(ctx context.Context) ([]Connection, error)
}

// Link is how a connection reports its state. One goroutine at a time calls Up and Down, and
// none calls them after Run has returned.
type Link struct {
	// Up reports that our identity is known and that events can arrive. Run calls it
	// again after each interruption; messages of that interruption may be missing.
	Up func(event.Self)
	// Down reports that events have been unable to arrive for a while, and why. Run keeps
	// trying. The next Up ends this state.
	Down func(error)
	// Others reports how many connections of other programs the platform has for our account, which get a part of the events; 0
	// ends that. It may be called concurrently. It is nil if nodes share the account.
	Others func(n int)
	// Missed reports that messages of a channel may have been missed since a time, by the
	// platform's clock; the connection need not have been interrupted. An empty channel
	// means every channel. The messages are read like those of an interruption. It may be
	// called concurrently and never waits.
	Missed func(channel string, since time.Time)
	// State is the workspace's state.
	State State
	Log   *slog.Logger
	// Wants returns the present wants of the workspace, which a reload can change.
	Wants func() Wants
}

// Hook is an adapter that receives envelopes over HTTP.
type Hook interface {
	// Handler serves the POST requests of the workspace's hook. It authenticates each
	// request, hands the body to inbox, and acknowledges it after the durable accept. It
	// refuses a request through the guard: if the address or the headers show that the
	// caller is not the platform, before it reads the body. It reads the body with
	// guard.Body if they prove that the caller is, and else with guard.Unverified.
	Handler(inbox Inbox, guard *guard.Guard) http.Handler
	// HookOnly reports whether envelopes, as the adapter is configured, arrive at the hook
	// alone. Such an adapter has no connection whose end it would notice.
	HookOnly() bool
}
