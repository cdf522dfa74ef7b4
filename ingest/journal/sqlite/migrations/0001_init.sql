-- Times are milliseconds since 1970; null or 0 is "none", as each column says.

CREATE TABLE workspaces (
	id   TEXT PRIMARY KEY,
	self TEXT NOT NULL          -- who we are there, a JSON object
) STRICT, WITHOUT ROWID;

CREATE TABLE channels (
	workspace TEXT NOT NULL,
	id        TEXT NOT NULL,
	type      TEXT NOT NULL,    -- room, direct, group
	PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE threads (
	id          INTEGER PRIMARY KEY,
	key         TEXT NOT NULL UNIQUE,
	uuid        TEXT NOT NULL,
	workspace   TEXT NOT NULL,
	platform    TEXT NOT NULL,
	channel     TEXT NOT NULL,
	agent       TEXT NOT NULL DEFAULT '',    -- whose turn is due
	mode        TEXT NOT NULL DEFAULT '',    -- set by the thread itself; empty: as configured
	opened_on   TEXT NOT NULL DEFAULT '',    -- external id of another thread's message
	next_seq    INTEGER NOT NULL DEFAULT 1,
	begun_seq   INTEGER NOT NULL DEFAULT 0,  -- the newest thread_seq when the last run began
	pending     INTEGER NOT NULL DEFAULT 0,  -- envelopes not settled
	owner       TEXT NOT NULL DEFAULT '',
	lease_until INTEGER NOT NULL DEFAULT 0,
	fence       INTEGER NOT NULL DEFAULT 0,
	intake_at   INTEGER,                     -- when its envelopes are due; null: none
	turn_at     INTEGER,                     -- when its next turn, or the one going, is due; null: none
	turn_since  INTEGER,                     -- since when a message waits for a turn; null: none
	run         INTEGER NOT NULL DEFAULT 0,  -- the run that is going; 0: none
	deliver_at  INTEGER                      -- when its deliveries are due; null: none
) STRICT;
CREATE INDEX threads_intake  ON threads (intake_at)      WHERE intake_at IS NOT NULL;
CREATE INDEX threads_turn    ON threads (agent, turn_at) WHERE turn_at IS NOT NULL;
CREATE INDEX threads_deliver ON threads (deliver_at)     WHERE deliver_at IS NOT NULL;

CREATE TABLE envelopes (
	id          INTEGER PRIMARY KEY,
	workspace   TEXT NOT NULL,
	platform    TEXT NOT NULL,
	transport   TEXT NOT NULL,
	dedupe_key  TEXT NOT NULL,
	kind        TEXT NOT NULL,
	thread      INTEGER,                     -- null: waits for its subject, or is settled without one
	subject     TEXT NOT NULL,               -- external id of the message it makes or is about
	received_at INTEGER NOT NULL,            -- 0: not known
	accepted_at INTEGER NOT NULL,
	state       TEXT NOT NULL,               -- pending, done, dead
	attempts    INTEGER NOT NULL DEFAULT 0,
	claims      INTEGER NOT NULL DEFAULT 0,
	not_before  INTEGER NOT NULL DEFAULT 0,
	disposition TEXT NOT NULL DEFAULT '',
	reason      TEXT NOT NULL DEFAULT '',
	error       TEXT NOT NULL DEFAULT '',
	message     INTEGER,                     -- what it made or changed
	body        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX envelopes_key ON envelopes (workspace, dedupe_key);
CREATE INDEX envelopes_pending ON envelopes (thread, id) WHERE state = 'pending' AND thread IS NOT NULL;
CREATE INDEX envelopes_waiting ON envelopes (workspace, subject) WHERE state = 'pending' AND thread IS NULL;
CREATE INDEX envelopes_dead ON envelopes (id) WHERE state = 'dead';

CREATE TABLE messages (
	id                INTEGER PRIMARY KEY,
	thread            INTEGER NOT NULL,
	seq               INTEGER,               -- thread_seq; null: only noted
	workspace         TEXT NOT NULL,
	external_id       TEXT,
	client_message_id TEXT,
	sender_id         TEXT NOT NULL,
	author            TEXT NOT NULL,         -- human, bot, agent, system, tool
	trigger           TEXT NOT NULL,         -- run, passive, none
	content           TEXT NOT NULL,
	quotes            TEXT NOT NULL DEFAULT '', -- JSON: quoted and forwarded messages; empty: none
	metadata          BLOB NOT NULL,
	version           INTEGER NOT NULL,      -- of the ingest contract
	origin            TEXT NOT NULL,         -- live, late, context, api, import
	revision          TEXT NOT NULL DEFAULT '',
	files             INTEGER NOT NULL DEFAULT 0,
	reactions         TEXT NOT NULL DEFAULT '', -- JSON; empty: none
	envelopes         TEXT NOT NULL DEFAULT '', -- ids of the envelopes that told of it
	sent_at           INTEGER NOT NULL,      -- the platform's time
	created_at        INTEGER NOT NULL,
	edited_at         INTEGER NOT NULL DEFAULT 0,
	deleted_at        INTEGER NOT NULL DEFAULT 0,
	run               INTEGER,               -- the run that takes it, or made it
	base_seq          INTEGER,               -- of a reply: the newest thread_seq it was given
	latest_seen_seq   INTEGER,               -- of a reply: the newest thread_seq its agent knew of
	server_seq        INTEGER                -- of a reply: the newest thread_seq when it was submitted
) STRICT;
CREATE UNIQUE INDEX messages_seq ON messages (thread, seq) WHERE seq IS NOT NULL;
CREATE UNIQUE INDEX messages_external ON messages (workspace, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX messages_client ON messages (thread, sender_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE INDEX messages_run ON messages (run) WHERE run IS NOT NULL;
CREATE INDEX messages_waiting ON messages (thread, seq) WHERE trigger = 'run' AND run IS NULL;

CREATE TABLE attachments (
	id          INTEGER PRIMARY KEY,
	message     INTEGER NOT NULL,
	part        INTEGER NOT NULL,
	external_id TEXT NOT NULL,
	name        TEXT NOT NULL,
	mime_type   TEXT NOT NULL,
	size        INTEGER NOT NULL,
	state       TEXT NOT NULL,               -- pending, stored, unavailable
	bucket      TEXT NOT NULL DEFAULT '',
	path        TEXT NOT NULL DEFAULT '',
	sha256      TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX attachments_message ON attachments (message, part);

CREATE TABLE runs (
	row           INTEGER PRIMARY KEY,
	id            TEXT NOT NULL UNIQUE,
	thread        INTEGER NOT NULL,
	agent         TEXT NOT NULL,
	parent        TEXT NOT NULL DEFAULT '',
	workstream    TEXT NOT NULL DEFAULT 'main',
	state         TEXT NOT NULL,             -- running, done, failed, canceled, dropped
	first_seq     INTEGER NOT NULL,
	context_after INTEGER NOT NULL,          -- its block: passive messages after this thread_seq
	base_seq      INTEGER NOT NULL,          -- and up to this one
	attempts      INTEGER NOT NULL DEFAULT 0,
	claims        INTEGER NOT NULL DEFAULT 0,
	reruns        INTEGER NOT NULL DEFAULT 0,
	not_before    INTEGER NOT NULL DEFAULT 0,
	begun_at      INTEGER NOT NULL,
	answered_at   INTEGER NOT NULL DEFAULT 0, -- first token
	ended_at      INTEGER NOT NULL DEFAULT 0,
	deadline      INTEGER NOT NULL DEFAULT 0,
	bot_channel   TEXT,                      -- the channel, where a bot's message began it
	input         BLOB,                      -- a client's own input; null: assembled from the thread
	error         TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX runs_thread ON runs (thread, first_seq);
CREATE INDEX runs_bot ON runs (bot_channel, begun_at) WHERE bot_channel IS NOT NULL;

CREATE TABLE run_events (
	run        INTEGER NOT NULL,
	seq        INTEGER NOT NULL,
	type       INTEGER NOT NULL,
	workstream TEXT NOT NULL,
	activity   TEXT NOT NULL,
	text       TEXT NOT NULL,
	details    BLOB,
	final      INTEGER NOT NULL,
	at         INTEGER NOT NULL,
	PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
	id          INTEGER PRIMARY KEY,
	thread      INTEGER NOT NULL,
	run         INTEGER NOT NULL,
	part        INTEGER NOT NULL,
	key         TEXT NOT NULL UNIQUE,
	workspace   TEXT NOT NULL,
	channel     TEXT NOT NULL,
	root        TEXT NOT NULL,
	payload     TEXT NOT NULL,
	state       TEXT NOT NULL,               -- pending, sending, sent, unknown, failed
	attempts    INTEGER NOT NULL DEFAULT 0,
	reserved_at INTEGER NOT NULL DEFAULT 0,  -- its place in the channel's pace; 0: none yet
	not_before  INTEGER NOT NULL DEFAULT 0,
	send_by     INTEGER NOT NULL DEFAULT 0,
	created_at  INTEGER NOT NULL,
	platform_id TEXT,
	error       TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX deliveries_platform ON deliveries (workspace, platform_id) WHERE platform_id IS NOT NULL;
CREATE INDEX deliveries_open ON deliveries (thread, id) WHERE state IN ('pending', 'sending');
CREATE INDEX deliveries_run ON deliveries (run);

CREATE TABLE paces (
	workspace     TEXT NOT NULL,
	channel       TEXT NOT NULL,
	next_at       INTEGER NOT NULL,          -- when the next post may leave
	blocked_until INTEGER NOT NULL,          -- the platform has asked us to wait
	PRIMARY KEY (workspace, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
	workspace TEXT NOT NULL,
	channel   TEXT NOT NULL,
	position  TEXT NOT NULL,
	PRIMARY KEY (workspace, channel)
) STRICT, WITHOUT ROWID;
