-- What several daemons on one store need. An embedded store has the same tables,
-- so that the one may be copied to the other.

ALTER TABLE threads ADD COLUMN bot_channel TEXT; -- workspace and channel, where a bot asked for the turn that waits
ALTER TABLE threads ADD COLUMN accepting INTEGER NOT NULL DEFAULT 0; -- names the transaction that last counted an envelope
CREATE INDEX threads_bot ON threads (bot_channel) WHERE bot_channel IS NOT NULL;

ALTER TABLE paces ADD COLUMN left_at INTEGER NOT NULL DEFAULT 0; -- when the last post left

CREATE TABLE holds (
	name  TEXT PRIMARY KEY,     -- what one node has at a time, such as a platform's connection
	owner TEXT NOT NULL,
	until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
	path  TEXT NOT NULL,        -- of an attachment's copy
	part  INTEGER NOT NULL,     -- 0, 1, 2 …
	bytes BLOB NOT NULL,
	PRIMARY KEY (path, part)
) STRICT;
