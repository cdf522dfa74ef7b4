-- The people who were forgotten. An earlier message of theirs that is read later is not stored.
CREATE TABLE forgotten (
	workspace TEXT NOT NULL,
	sender_id TEXT NOT NULL,
	at INTEGER NOT NULL, -- when an operator last asked for it
	position INTEGER NOT NULL DEFAULT 0, -- row of the last message that was looked at; 0: what has the person's words has not been emptied yet
	PRIMARY KEY (workspace, sender_id)
) STRICT, WITHOUT ROWID;
-- What an agent whose protocol has conversations of its own has kept of the one about a thread.
CREATE TABLE agent_sessions (
	thread INTEGER NOT NULL,
	agent TEXT NOT NULL,
	known TEXT NOT NULL, -- the id by which the agent knows the thread; the id of an unfinished run whose conversation must not be kept
	session TEXT NOT NULL,
	PRIMARY KEY (thread, agent, known)
) STRICT, WITHOUT ROWID;
-- The messages that retention.messages has not emptied.
CREATE INDEX messages_sent ON messages (sent_at) WHERE deleted_at = 0;
