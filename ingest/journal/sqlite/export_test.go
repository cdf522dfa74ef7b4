package sqlite

// WithCheckpoints sets the numbers of pages after which the log is checkpointed and
// restarted.
func WithCheckpoints(passive, longest int) Option {
	return func(o *options) { o.passivePages, o.longestPages = passive, longest }
}

// Waiting returns the number of writes that wait for a transaction.
func (e *Engine) Waiting() int { _, ordinary := e.committer.Waiting(); return ordinary }

// WithVFS opens the files through the named SQLite VFS instead of the system's.
func WithVFS(name string) Option { return func(o *options) { o.vfs = name } }
