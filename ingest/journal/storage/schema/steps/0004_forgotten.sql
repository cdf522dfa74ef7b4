-- The people who were forgotten. An earlier message of theirs that is read later is not stored.
CREATE TABLE forgotten (
	workspace TEXT NOT NULL,
	sender_id TEXT NOT NULL,
	at INTEGER NOT NULL, -- when an operator last asked for it
	position INTEGER NOT NULL DEFAULT 0, -- row of the last message that was looked at; 0: what has the person's words has not been emptied yet
	PRIMARY KEY (workspace, sender_id)
) STRICT, WITHOUT ROWID;
-- The messages that retention.messages has not emptied.
CREATE INDEX messages_sent ON messages (sent_at) WHERE deleted_at = 0;
