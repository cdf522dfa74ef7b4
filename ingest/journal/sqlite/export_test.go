package sqlite

// WithCheckpoints sets after how many pages the log is checkpointed, and begun again.
func WithCheckpoints(passive, longest int) Option {
	return func(o *options) { o.passivePages, o.longestPages = passive, longest }
}

// Waiting is how many writes are in line for a transaction.
func (e *Engine) Waiting() int { _, ordinary := e.committer.Waiting(); return ordinary }
