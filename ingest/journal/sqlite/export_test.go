package sqlite

// WithCheckpoints sets the numbers of pages after which the log is checkpointed and
// restarted.
func WithCheckpoints(passive, longest int) Option {
	return func(o *options) { o.passivePages, o.longestPages = passive, longest }
}

// Waiting returns the number of writes that wait for a transaction.
func (e *Engine) Waiting() int { _, ordinary := e.committer.Waiting(); return ordinary }
