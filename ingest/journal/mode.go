package journal

// ThreadMode says which messages of a thread trigger runs.
type ThreadMode string

// The modes of threads.
const (
	ModeOpen           ThreadMode = "open"            // those that the policy admits
	ModeInvocationOnly ThreadMode = "invocation_only" // of those, only mentions of an agent
)

// InvocationOnly implements Look.
func (r *recordTx) InvocationOnly() bool { return r.thread.mode == ModeInvocationOnly }
