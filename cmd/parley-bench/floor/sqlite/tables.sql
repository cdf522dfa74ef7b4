-- The smallest tables for the three commits of a message.

CREATE TABLE envelopes (
	id   INTEGER PRIMARY KEY,
	key  TEXT NOT NULL UNIQUE,
	done INTEGER NOT NULL DEFAULT 0,
	body BLOB NOT NULL
) STRICT;

CREATE TABLE messages (
	id      INTEGER PRIMARY KEY,
	channel TEXT NOT NULL,
	thread  TEXT NOT NULL,
	content TEXT NOT NULL,
	sent    TEXT                -- ts of the reply
) STRICT;
