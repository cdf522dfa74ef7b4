-- Times are milliseconds since 1970; null or 0 is "none", as each column says.

CREATE TABLE workspaces (
	id TEXT PRIMARY KEY,
	self TEXT NOT NULL, -- our identity there, a JSON object; empty: unknown
	removed_at INTEGER NOT NULL DEFAULT 0 -- when the last node removed it from its configuration; 0: it is configured
) STRICT, WITHOUT ROWID;

CREATE TABLE channels (
	workspace TEXT NOT NULL,
	id        TEXT NOT NULL,
	type      TEXT NOT NULL,    -- room, direct, group
	PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE threads (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	key TEXT NOT NULL UNIQUE,
	uuid TEXT NOT NULL,
	workspace TEXT NOT NULL,
	platform TEXT NOT NULL,
	channel TEXT NOT NULL,
	parent TEXT NOT NULL DEFAULT '', -- of the channel, if the thread is a channel that belongs to another one
	agent TEXT NOT NULL DEFAULT '', -- the agent of the turn that is due, or of the unfinished run
	mode TEXT NOT NULL DEFAULT 'open', -- open, invocation_only
	made_by TEXT NOT NULL DEFAULT '', -- the caller of our API that made it and owns it; empty: its first message made it
	made_at INTEGER NOT NULL DEFAULT 0, -- when made_by made it; 0: nobody did
	closed INTEGER NOT NULL DEFAULT 0, -- 1: it is for its participants alone; 0: also for every agent outside Parley
	opened_on TEXT NOT NULL DEFAULT '', -- external id of the message of another thread on which it was opened
	next_seq INTEGER NOT NULL DEFAULT 1,
	last_at INTEGER NOT NULL DEFAULT 0, -- when its last message was recorded; 0: none was
	begun_seq INTEGER NOT NULL DEFAULT 0, -- the highest thread_seq when the last run began
	context_from INTEGER NOT NULL DEFAULT 0, -- thread_seq of the last command for a new context; 0: none
	pending INTEGER NOT NULL DEFAULT 0, -- envelopes that are not settled
	owner TEXT NOT NULL DEFAULT '', -- the node that has the claim; empty: none
	lease_until INTEGER NOT NULL DEFAULT 0,
	fence INTEGER NOT NULL DEFAULT 0,
	intake_at INTEGER, -- when its envelopes are due; null: none are pending
	turn_at INTEGER, -- when its next turn, or its unfinished run, is due; null: none
	turn_since INTEGER, -- since when a message waits for a turn; null: none waits
	bot_channel TEXT, -- workspace and channel, if a bot requested the waiting turn
	run_id TEXT, -- the unfinished run; null: none, and the other run_* columns have no meaning
	run_begun_at INTEGER NOT NULL DEFAULT 0,
	run_not_before INTEGER NOT NULL DEFAULT 0, -- of its next attempt
	run_attempts INTEGER NOT NULL DEFAULT 0, -- reported failures
	run_fence INTEGER NOT NULL DEFAULT 0, -- of the claim that works on it; 0: none does
	run_claims INTEGER NOT NULL DEFAULT 0, -- claims that ended with their process while they worked on it
	run_reruns INTEGER NOT NULL DEFAULT 0,
	run_left INTEGER NOT NULL DEFAULT 0, -- number of its messages that are not deleted
	run_edited_at INTEGER NOT NULL DEFAULT 0, -- the last edit of one of its messages
	run_bot_channel TEXT, -- workspace and channel, if a bot requested it
	run_context_from INTEGER NOT NULL DEFAULT 0, -- context_from when it began
	run_question TEXT NOT NULL DEFAULT '', -- id of the run whose question the unfinished run answers; empty: none
	question TEXT NOT NULL DEFAULT '', -- id of the run whose question the next run gets; empty: none
	run_seq INTEGER NOT NULL DEFAULT 0, -- seq of its last event
	run_events INTEGER NOT NULL DEFAULT 0, -- number of its events, without chunks
	run_event_at INTEGER NOT NULL DEFAULT 0, -- time of its last event
	run_dropped INTEGER NOT NULL DEFAULT 0, -- number of its events that were removed
	run_taken INTEGER NOT NULL DEFAULT 0, -- 1: its agent has taken it and answers later
	run_answer TEXT, -- the later answer of its agent, a compact message; null: none yet
	accepting INTEGER NOT NULL DEFAULT 0, -- identifies the transaction that last counted an envelope
	history TEXT NOT NULL DEFAULT '', -- JSON: the messages read from before it was known; empty: none were requested
	changed INTEGER NOT NULL DEFAULT 0 -- rises when one of its messages changes, is removed, or gets another turn
--- sqlite
) STRICT;
--- postgres
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
--- both
CREATE INDEX threads_uuid ON threads (uuid);
CREATE UNIQUE INDEX threads_web ON threads (uuid) WHERE platform = 'web';
CREATE INDEX threads_last ON threads (workspace, last_at, id) WHERE last_at > 0;
CREATE INDEX threads_made ON threads (workspace, made_by, made_at, id) WHERE made_by <> '';
CREATE INDEX threads_made_at ON threads (workspace, made_at, id) WHERE made_by <> '' AND closed = 0;
CREATE INDEX threads_intake ON threads (intake_at) WHERE intake_at IS NOT NULL;
CREATE INDEX threads_turn ON threads (agent, turn_at) WHERE turn_at IS NOT NULL;
CREATE UNIQUE INDEX threads_run ON threads (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX threads_bot ON threads (bot_channel) WHERE bot_channel IS NOT NULL;
CREATE INDEX threads_run_bot ON threads (run_bot_channel) WHERE run_bot_channel IS NOT NULL;

-- The callers of our API that take part in a thread. The one that made the thread is one of them.
CREATE TABLE participants (
	thread INTEGER NOT NULL,
	actor TEXT NOT NULL, -- user:<uuid> or agent:<uuid>
	workspace TEXT NOT NULL,
	made_at INTEGER NOT NULL, -- of the thread
	PRIMARY KEY (thread, actor)
) STRICT, WITHOUT ROWID;
CREATE INDEX participants_actor ON participants (workspace, actor, made_at, thread);

-- The callers of our API that have news.
CREATE TABLE actors (
	workspace TEXT NOT NULL,
	actor TEXT NOT NULL,
	last_seq INTEGER NOT NULL, -- of its newest news
	PRIMARY KEY (workspace, actor)
) STRICT, WITHOUT ROWID;

-- The threads in which a caller of our API began to take part, and the messages that mention it.
CREATE TABLE news (
	workspace TEXT NOT NULL,
	actor TEXT NOT NULL,
	seq INTEGER NOT NULL, -- 1, 2, 3 … of the actor
	thread INTEGER NOT NULL,
	message INTEGER NOT NULL, -- the row of the message that mentions it; 0: it began to take part
	at INTEGER NOT NULL,
	PRIMARY KEY (workspace, actor, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX news_at ON news (at);

CREATE TABLE envelopes (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	workspace   TEXT NOT NULL,
	platform    TEXT NOT NULL,
	transport   TEXT NOT NULL,
	dedupe_key  TEXT NOT NULL,
	kind        TEXT NOT NULL,
	thread      INTEGER,                     -- null: it waits for its message, or is settled without a thread
	message_id  TEXT NOT NULL,               -- external id of the message that it makes or is about
	channel     TEXT NOT NULL DEFAULT '',    -- of the message that it is about, if it waits for that message; else empty
	resubmitted_at INTEGER NOT NULL DEFAULT 0, -- when an operator last resubmitted it, a dead letter; 0: nobody did
	received_at INTEGER NOT NULL,            -- 0: unknown
	accepted_at INTEGER NOT NULL,
	state       TEXT NOT NULL,               -- pending, done, dead
	attempts    INTEGER NOT NULL DEFAULT 0,
	claims      INTEGER NOT NULL DEFAULT 0,
	not_before  INTEGER NOT NULL DEFAULT 0,
	disposition TEXT NOT NULL DEFAULT '',
	reason      TEXT NOT NULL DEFAULT '',
	error       TEXT NOT NULL DEFAULT '',
	message     INTEGER,                     -- the row that it made or changed; null: none, or that of message_uuid
	message_uuid TEXT NOT NULL,            -- id of the message that it makes
	body        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX envelopes_key ON envelopes (workspace, dedupe_key);
CREATE INDEX envelopes_pending ON envelopes (thread, id) WHERE state = 'pending' AND thread IS NOT NULL;
CREATE INDEX envelopes_waiting ON envelopes (workspace, message_id) WHERE state = 'pending' AND thread IS NULL;
CREATE INDEX envelopes_run ON envelopes (workspace, substr(dedupe_key, 42)) WHERE state = 'pending' AND substr(dedupe_key, 1, 4) = 'run:';
CREATE INDEX envelopes_unstored ON envelopes (workspace, message_id) WHERE disposition IN ('ignored', 'dead');
CREATE INDEX envelopes_dead ON envelopes (id) WHERE state = 'dead';

CREATE TABLE messages (
	row INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL, -- UUIDv7, made before the durable accept
	thread INTEGER NOT NULL,
	seq INTEGER, -- thread_seq; null: only its external id is stored
	workspace TEXT NOT NULL,
	external_id TEXT,
	client_message_id TEXT,
	client_run_id TEXT, -- the client's own id of the run that it asks for
	run_input TEXT NOT NULL DEFAULT '', -- JSON: what the client gave for that run besides the text; empty: nothing
	sender_id TEXT NOT NULL,
	author TEXT NOT NULL, -- human, bot, agent, system, tool
	trigger TEXT NOT NULL, -- run, passive, none
	reason TEXT NOT NULL DEFAULT '', -- of the trigger
	agent TEXT NOT NULL DEFAULT '', -- the agent that it asks; empty: none
	memory INTEGER NOT NULL DEFAULT 1, -- 0: no block and no later turn shows it
	content TEXT NOT NULL,
	quotes TEXT NOT NULL DEFAULT '', -- JSON: quoted and forwarded messages; empty: none
	metadata BLOB NOT NULL,
	version INTEGER NOT NULL, -- of the ingest contract
	origin TEXT NOT NULL, -- live, late, context, api, import
	revision TEXT NOT NULL DEFAULT '',
	files INTEGER NOT NULL DEFAULT 0,
	files_until INTEGER NOT NULL DEFAULT 0, -- until when its turn waits for its files; 0: it has them
	continues TEXT, -- id of the unfinished run that had the message whose rest this one is; null: none
	reactions TEXT NOT NULL DEFAULT '', -- JSON; empty: none
	envelopes TEXT NOT NULL DEFAULT '', -- ids of the envelopes that contain its words
	sent_at INTEGER NOT NULL, -- the earlier of the platform's time and the arrival
	created_at INTEGER NOT NULL,
	edited_at INTEGER NOT NULL DEFAULT 0,
	deleted_at INTEGER NOT NULL DEFAULT 0,
	run TEXT, -- id of the run that answers it, or of the run that it is the reply or the notice of
	context_after INTEGER, -- of a turn's first message: its block holds passive messages after this thread_seq
	base_seq INTEGER, -- of a turn's first message: its block ends at this thread_seq; of a reply: the highest thread_seq in the agent's input
	gap INTEGER NOT NULL DEFAULT 0, -- of a turn's first message: some earlier messages could not be read
	latest_seen_seq INTEGER, -- of a reply, or of an agent outside Parley: the highest thread_seq that its agent knew
	server_seq INTEGER, -- of a reply, or of an agent outside Parley: the thread's highest thread_seq when it was submitted
	sender_base_seq INTEGER -- of an agent outside Parley: the thread_seq with which it began; null: it gave none
) STRICT;
CREATE UNIQUE INDEX messages_seq ON messages (thread, seq) WHERE seq IS NOT NULL;
CREATE UNIQUE INDEX messages_external ON messages (workspace, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX messages_client ON messages (thread, sender_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE INDEX messages_edited ON messages (thread, edited_at) WHERE edited_at > 0;
CREATE INDEX messages_deleted ON messages (thread, deleted_at) WHERE deleted_at > 0;
CREATE UNIQUE INDEX messages_client_run ON messages (client_run_id, thread) WHERE client_run_id IS NOT NULL;
CREATE INDEX messages_id ON messages (id);
CREATE INDEX messages_run ON messages (run) WHERE run IS NOT NULL;
CREATE INDEX messages_turns ON messages (thread, sent_at, seq) WHERE context_after IS NOT NULL;
CREATE INDEX messages_waiting ON messages (thread, sent_at, seq) WHERE trigger = 'run' AND run IS NULL;
CREATE INDEX messages_files ON messages (thread, files_until) WHERE files_until > 0 AND run IS NULL;
-- A remembered transcript of a thread holds while threads.changed stays the same.
--- sqlite
CREATE TRIGGER messages_changed AFTER UPDATE OF seq, author, memory, content, quotes, metadata, files, sent_at, deleted_at ON messages BEGIN
	UPDATE threads SET changed = changed + 1 WHERE id = old.thread;
END;
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
	UPDATE threads SET changed = changed + 1 WHERE id = old.thread;
END;
--- postgres
CREATE FUNCTION thread_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE threads SET changed = changed + 1 WHERE id = OLD.thread;
	RETURN NULL;
END $$;
CREATE TRIGGER messages_changed AFTER UPDATE OF seq, author, memory, content, quotes, metadata, files, sent_at, deleted_at ON messages
	FOR EACH ROW EXECUTE FUNCTION thread_changed();
CREATE TRIGGER messages_removed AFTER DELETE ON messages FOR EACH ROW EXECUTE FUNCTION thread_changed();
--- both

-- The messages whose words are in another message's quotations, or in its envelopes.
CREATE TABLE carried (
	workspace TEXT NOT NULL,
	message_id TEXT NOT NULL, -- external id of the message whose words they are; it may not be stored
	message INTEGER NOT NULL, -- the row of the other message
	PRIMARY KEY (workspace, message_id, message)
) STRICT, WITHOUT ROWID;

CREATE TABLE attachments (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	message     INTEGER NOT NULL,
	part        INTEGER NOT NULL,
	external_id TEXT NOT NULL,
	name        TEXT NOT NULL,
	mime_type   TEXT NOT NULL,
	size        INTEGER NOT NULL,
	type        TEXT NOT NULL DEFAULT '',    -- voice, or empty
	duration_ms INTEGER NOT NULL DEFAULT 0, -- of a recording; 0 if unknown
	words       TEXT NOT NULL DEFAULT '',    -- the text of the file, if the payload has it
	state       TEXT NOT NULL,               -- pending, stored, unavailable
	bucket      TEXT NOT NULL DEFAULT '',
	path        TEXT NOT NULL DEFAULT '',
	sha256      TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX attachments_message ON attachments (message, part);
CREATE INDEX attachments_copy ON attachments (path) WHERE state = 'stored';

-- Places of stored bytes that are removed if no attachment and no delivery names them.
CREATE TABLE copies_to_check (
	bucket TEXT NOT NULL,
	path TEXT NOT NULL,
	check_at INTEGER NOT NULL,
	removed_until INTEGER NOT NULL DEFAULT 0, -- until when a removal may be under way; 0: none is
	PRIMARY KEY (bucket, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX copies_to_check_at ON copies_to_check (check_at);

CREATE TABLE runs (
	id TEXT PRIMARY KEY,
	thread INTEGER NOT NULL,
	agent TEXT NOT NULL,
	state TEXT NOT NULL, -- done, failed, canceled, dropped, interrupted
	begun_at INTEGER NOT NULL,
	answered_at INTEGER NOT NULL, -- first token; 0: none
	ended_at INTEGER NOT NULL,
	bot_channel TEXT, -- workspace and channel, if a bot requested it
	error TEXT NOT NULL,
	dropped INTEGER NOT NULL DEFAULT 0 -- number of its events that were removed
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_ended ON runs (ended_at, id);
CREATE INDEX runs_failed ON runs (ended_at, id) WHERE state = 'failed';
CREATE INDEX runs_bot ON runs (bot_channel, begun_at) WHERE bot_channel IS NOT NULL;

-- The requests of a run to its agent that have ended, or whose process has.
CREATE TABLE run_attempts (
	run TEXT NOT NULL,
	n INTEGER NOT NULL, -- 1, 2, 3 … of the run
	node TEXT NOT NULL, -- that made it
	begun_at INTEGER NOT NULL, -- 0: unknown, of a lost one
	answered_at INTEGER NOT NULL, -- first message of the agent; 0: none
	ended_at INTEGER NOT NULL, -- 0: its process ended first, so that it is lost
	error TEXT NOT NULL,
	finish TEXT NOT NULL, -- the model's own word for the end of its answer; empty: it gave none
	tokens_in INTEGER NOT NULL, -- 0: unknown, like tokens_out
	tokens_out INTEGER NOT NULL,
	input_sha256 TEXT NOT NULL, -- hexadecimal; empty: the agent got no input
	PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

-- The inputs of agents, if the configuration keeps them.
CREATE TABLE run_inputs (
	run TEXT NOT NULL,
	n INTEGER NOT NULL, -- of the attempt; 0: a delete during the run, whose inputs are not kept
	thread INTEGER NOT NULL,
	at INTEGER NOT NULL,
	input TEXT NOT NULL, -- JSON: the messages
	PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_inputs_at ON run_inputs (at);
CREATE INDEX run_inputs_thread ON run_inputs (thread);

-- What agents have asked the people of a thread.
CREATE TABLE questions (
	run TEXT PRIMARY KEY, -- that asked it
	thread INTEGER NOT NULL,
	agent TEXT NOT NULL,
	state TEXT NOT NULL, -- open, answered, expired; final if it was open a second time
	body TEXT NOT NULL, -- JSON: the options and the agent's details
	answer TEXT NOT NULL DEFAULT '', -- JSON; empty: none
	asked_at INTEGER NOT NULL,
	until_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX questions_open ON questions (until_at) WHERE state = 'open';
CREATE INDEX questions_asked ON questions (asked_at);

CREATE TABLE run_events (
	run TEXT NOT NULL,
	seq INTEGER NOT NULL,
	type INTEGER NOT NULL,
	workstream TEXT NOT NULL,
	activity TEXT NOT NULL,
	text TEXT NOT NULL,
	details BLOB,
	final INTEGER NOT NULL,
	at INTEGER NOT NULL,
	PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_events_at ON run_events (at);

-- Requests of other writers that added messages to a run.
CREATE TABLE run_posts (
	run TEXT NOT NULL,
	key TEXT NOT NULL, -- the writer's key of the request, or one of ours
	messages INTEGER NOT NULL, -- number of its messages that count against the bound of the run
	at INTEGER NOT NULL,
	PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_posts_at ON run_posts (at);

-- The requests of a run to its agent that ended with calls of tools.
CREATE TABLE run_steps (
	run TEXT NOT NULL,
	n INTEGER NOT NULL, -- 0, 1, 2 … of the run
	body TEXT NOT NULL, -- JSON: the calls and their results
	at INTEGER NOT NULL,
	PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_steps_at ON run_steps (at);

-- The children of runs, each with a thread of its own.
CREATE TABLE workstreams (
	id TEXT PRIMARY KEY, -- the launch_id
	run TEXT NOT NULL, -- that launched it
	asker TEXT NOT NULL, -- the agent of that run
	workspace TEXT NOT NULL,
	platform TEXT NOT NULL,
	parent TEXT NOT NULL, -- key of that run's thread
	channel TEXT NOT NULL, -- of that thread
	channel_parent TEXT NOT NULL,
	thread TEXT NOT NULL UNIQUE, -- key of its own thread, which its task makes
	agent TEXT NOT NULL,
	name TEXT NOT NULL,
	task TEXT NOT NULL,
	interactive INTEGER NOT NULL, -- 1: it ends only if its parent says so
	apart INTEGER NOT NULL, -- 1: its files are not among those of the run
	state TEXT NOT NULL, -- running, canceling, completed, failed, timeout, canceled
	phase TEXT NOT NULL, -- planning, executing_tool, synthesizing, blocked, done
	tool TEXT NOT NULL DEFAULT '', -- of executing_tool
	iteration INTEGER NOT NULL DEFAULT 0,
	message TEXT NOT NULL DEFAULT '', -- its own words about its work
	launched_at INTEGER NOT NULL,
	deadline_at INTEGER NOT NULL,
	ended_at INTEGER, -- of a canceling one when its end was asked for; null: it works
	summary TEXT NOT NULL DEFAULT '',
	error TEXT NOT NULL DEFAULT '',
	said INTEGER NOT NULL DEFAULT 0, -- number of the steps of its life that its parent or it was told of
	reported INTEGER NOT NULL DEFAULT 0, -- thread_seq of its last reply that its parent was told of
	due_at INTEGER -- when its next step is due; null: none is left
) STRICT, WITHOUT ROWID;
CREATE INDEX workstreams_run ON workstreams (run);
CREATE INDEX workstreams_parent ON workstreams (parent);
CREATE INDEX workstreams_due ON workstreams (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX workstreams_ended ON workstreams (ended_at) WHERE ended_at IS NOT NULL;

-- What agents are asked at a time.
CREATE TABLE schedules (
	workspace TEXT NOT NULL,
	id TEXT NOT NULL,
	thread TEXT NOT NULL, -- key of the thread for which an agent made it; empty: it is in the file of its workspace
	plan TEXT NOT NULL, -- JSON: when it ticks, and what a tick asks
	paused INTEGER NOT NULL DEFAULT 0, -- 1: by an operator
	next_at INTEGER, -- when its next tick is due; null: none is left, or it is paused
	root TEXT NOT NULL DEFAULT '', -- message of the tick whose post begins the thread of the further ones
	created_at INTEGER NOT NULL,
	PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_thread ON schedules (thread) WHERE thread <> '';

-- The times at which schedules have asked.
CREATE TABLE schedule_ticks (
	workspace TEXT NOT NULL,
	schedule TEXT NOT NULL,
	planned_at INTEGER NOT NULL,
	message TEXT NOT NULL, -- external id of the message that asks
	state TEXT NOT NULL, -- due, asked, failed, skipped
	error TEXT NOT NULL, -- why it failed, was skipped or waits; empty: none
	tries INTEGER NOT NULL DEFAULT 0, -- to make its message durable
	due_at INTEGER, -- when its message is to be made durable; null: it is, or there will be none
	PRIMARY KEY (workspace, schedule, planned_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_ticks_due ON schedule_ticks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedule_ticks_planned ON schedule_ticks (planned_at);

-- Tickets admit one request each, instead of a token.
CREATE TABLE tickets (
	hash TEXT PRIMARY KEY, -- SHA-256 of the ticket
	workspace TEXT NOT NULL,
	token TEXT NOT NULL, -- names the token that asked for it, as it was then
	path TEXT NOT NULL, -- that it is good for
	until_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_until ON tickets (until_at);

CREATE TABLE deliveries (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	thread INTEGER NOT NULL,
	run TEXT NOT NULL, -- id of the run whose reply it carries
	part INTEGER NOT NULL, -- of the reply; -1: it carries no part
	key TEXT NOT NULL UNIQUE, -- idempotency key
	workspace TEXT NOT NULL,
	channel TEXT NOT NULL,
	place TEXT NOT NULL, -- only the adapter reads it
	payload TEXT NOT NULL,
	state TEXT NOT NULL, -- held, pending, sending, sent, unknown, failed, dropped
	attempts INTEGER NOT NULL DEFAULT 0, -- begun calls; every write about the delivery names this number
	due_at INTEGER NOT NULL, -- when a worker must look at it, if it is pending or sending; else about the time of its end
	reserved_at INTEGER NOT NULL DEFAULT 0, -- its place in the channel's pace; 0: none yet
	send_by INTEGER NOT NULL DEFAULT 0, -- deadline of the last call
	created_at INTEGER NOT NULL,
	platform_id TEXT,
	error TEXT NOT NULL DEFAULT '',
	kind TEXT NOT NULL, -- post, preview, remove, close, tell, copy, unsign, react, state, restate
	replaces INTEGER NOT NULL DEFAULT 0, -- the delivery whose post it takes over, removes or closes; 0: none
	stream INTEGER NOT NULL DEFAULT 0, -- of a preview: it began as a stream
	asker TEXT NOT NULL DEFAULT '', -- the platform's id of the user whom it answers
	file TEXT NOT NULL DEFAULT '', -- JSON; empty: none
	buttons TEXT NOT NULL DEFAULT '', -- JSON; empty: none
	changes INTEGER NOT NULL DEFAULT 0, -- of a state post: since its last call began
	card TEXT NOT NULL DEFAULT '' -- JSON; empty: none
) STRICT;
CREATE UNIQUE INDEX deliveries_platform ON deliveries (workspace, platform_id) WHERE platform_id IS NOT NULL;
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE state IN ('pending', 'sending');
CREATE INDEX deliveries_open ON deliveries (thread, id) WHERE state IN ('pending', 'sending');
CREATE INDEX deliveries_run ON deliveries (run);
CREATE INDEX deliveries_kept ON deliveries (due_at) WHERE state IN ('sent', 'unknown', 'failed') AND (payload <> '' OR file <> '');
CREATE INDEX deliveries_file ON deliveries (id) WHERE file <> '';
CREATE INDEX deliveries_ended ON deliveries (state, id) WHERE state IN ('unknown', 'failed', 'dropped');

CREATE TABLE paces (
	workspace     TEXT NOT NULL,
	channel       TEXT NOT NULL,
	next_at       INTEGER NOT NULL,          -- when the next post may leave
	blocked_until INTEGER NOT NULL,          -- until when the platform has asked us to wait
	left_at INTEGER NOT NULL DEFAULT 0, -- when the last post left
	PRIMARY KEY (workspace, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE budgets (
	workspace TEXT NOT NULL,
	name TEXT NOT NULL, -- of the counter of a sender, a channel, the workspace, or the files of a sender
	until_at INTEGER NOT NULL, -- the end of its window
	runs INTEGER NOT NULL, -- that messages asked for in the window, or bytes of files
	told INTEGER NOT NULL, -- 1: the sender was told in the window that there are no more
	PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

-- The position of retention in a table whose rows remain.
CREATE TABLE retention_progress (
	task TEXT PRIMARY KEY,
	position INTEGER NOT NULL -- id of the last row
) STRICT, WITHOUT ROWID;


CREATE TABLE watermarks (
	workspace TEXT PRIMARY KEY,
	at        INTEGER NOT NULL          -- microseconds: every earlier message is recorded or in a gap
) STRICT, WITHOUT ROWID;

CREATE TABLE gaps (
	workspace TEXT NOT NULL,
	channel   TEXT NOT NULL,
	from_at   INTEGER NOT NULL,         -- microseconds, like until_at: messages may be missing in between
	until_at  INTEGER NOT NULL,
	PRIMARY KEY (workspace, channel)
) STRICT, WITHOUT ROWID;

-- The small named values of adapters, such as a poller's cursor. The workspace is empty for the store's own keys.
CREATE TABLE adapter_state (
	workspace TEXT NOT NULL,
	name      TEXT NOT NULL,
	value     TEXT NOT NULL,
	PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE exclusive_leases (
	name  TEXT PRIMARY KEY,     -- of the exclusive right, such as a platform's connection
	owner TEXT NOT NULL,
	until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
	path  TEXT NOT NULL,        -- of an attachment's copy
	part  INTEGER NOT NULL,     -- 0, 1, 2 …
	bytes BLOB NOT NULL,
	PRIMARY KEY (path, part)
) STRICT;

-- What operators did.
CREATE TABLE operator_log (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	at INTEGER NOT NULL,
	who TEXT NOT NULL, -- the operator
	what TEXT NOT NULL, -- the action, such as dead.retry
	subject TEXT NOT NULL, -- the id of its subject; empty: it has none
	note TEXT NOT NULL,
	key TEXT NOT NULL, -- idempotency key of the request; empty: none, or the action failed
	result TEXT NOT NULL DEFAULT '', -- JSON; empty: the action has not ended, or it failed
	error TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX operator_log_key ON operator_log (who, key) WHERE key <> '';
CREATE INDEX operator_log_at ON operator_log (at);

--- sqlite
-- The words of messages, by the messages' rows. The index is filled after the messages are stored. What it has of a
-- removed text is overwritten.
CREATE VIRTUAL TABLE search_words USING fts5 (words, tokenize = 'ascii', detail = none, columnsize = 0);
INSERT INTO search_words (search_words, rank) VALUES ('secure-delete', 1);
--- postgres
-- The words of messages, by the messages' rows. The index is filled after the messages are stored.
CREATE TABLE search_words (
	rowid BIGINT PRIMARY KEY,
	words tsvector NOT NULL
);
CREATE INDEX search_words_words ON search_words USING gin (words);
-- Returns the rows that have each of some words. Both engines have it by this name. The sum keeps the planner, which
-- does not know the words, from reading the newest rows until enough of them have the words.
CREATE FUNCTION search_words(query text) RETURNS TABLE (rowid bigint) LANGUAGE sql STABLE AS $$
	SELECT s.rowid + 0 FROM search_words s WHERE s.words @@ CAST(replace(query, ' ', ' & ') AS tsquery)
$$;
--- both

-- The messages that were changed or removed since the index was last brought up to date.
CREATE TABLE search_changes (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	message INTEGER NOT NULL
) STRICT;
--- sqlite
CREATE TRIGGER messages_search AFTER UPDATE OF content, deleted_at, thread ON messages
	WHEN old.content <> new.content OR old.deleted_at <> new.deleted_at OR old.thread <> new.thread BEGIN
	INSERT INTO search_changes (message) VALUES (new.row);
END;
CREATE TRIGGER messages_search_removed AFTER DELETE ON messages BEGIN
	INSERT INTO search_changes (message) VALUES (old.row);
END;
--- postgres
CREATE FUNCTION search_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO search_changes (message) VALUES (OLD.row);
	RETURN NULL;
END $$;
CREATE TRIGGER messages_search AFTER UPDATE OF content, deleted_at, thread ON messages
	FOR EACH ROW WHEN (OLD.content <> NEW.content OR OLD.deleted_at <> NEW.deleted_at OR OLD.thread <> NEW.thread) EXECUTE FUNCTION search_changed();
CREATE TRIGGER messages_search_removed AFTER DELETE ON messages FOR EACH ROW EXECUTE FUNCTION search_changed();
--- both

-- Has one row: the index is complete up to the message with the row position.
CREATE TABLE search_progress (
	id INTEGER PRIMARY KEY, -- always 1
	position INTEGER NOT NULL
) STRICT;

-- The people and bots that have written in workspaces, with their newest names.
CREATE TABLE search_people (
	workspace TEXT NOT NULL,
	sender_id TEXT NOT NULL,
	name TEXT NOT NULL,
	words TEXT NOT NULL, -- of the name, as in search_words
	last_at INTEGER NOT NULL, -- of the newest message
	PRIMARY KEY (workspace, sender_id)
) STRICT, WITHOUT ROWID;

-- Has one row while copy-store fills this store; no daemon may use the store then.
CREATE TABLE unfinished_copy (
	id       INTEGER PRIMARY KEY,  -- always 1
	begun_at INTEGER NOT NULL
) STRICT;
