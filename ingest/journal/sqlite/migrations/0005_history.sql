-- What is read from a platform: messages that were missed, and what was said in a
-- thread before it was known.

CREATE TABLE aside (
	id          INTEGER PRIMARY KEY,
	workspace   TEXT NOT NULL,
	channel     TEXT NOT NULL,
	dedupe_key  TEXT NOT NULL,
	platform    TEXT NOT NULL,
	transport   TEXT NOT NULL,
	received_at INTEGER NOT NULL,
	body        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX aside_key ON aside (workspace, dedupe_key);
CREATE INDEX aside_channel ON aside (workspace, channel, id);

ALTER TABLE threads ADD COLUMN preface TEXT NOT NULL DEFAULT ''; -- JSON: what was read of the time before it was known; empty: nothing was looked for
