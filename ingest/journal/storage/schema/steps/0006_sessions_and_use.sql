-- What an agent whose protocol has conversations of its own has kept of the one about a thread.
CREATE TABLE agent_sessions (
	thread INTEGER NOT NULL,
	agent TEXT NOT NULL,
	known TEXT NOT NULL, -- the id by which the agent knows the thread; the id of an unfinished run whose conversation must not be kept
	session TEXT NOT NULL,
	PRIMARY KEY (thread, agent, known)
) STRICT, WITHOUT ROWID;
-- The settings of its conversation that an agent offers in a thread, and the values that people have chosen.
CREATE TABLE agent_choices (
	thread INTEGER NOT NULL,
	agent TEXT NOT NULL,
	name TEXT NOT NULL,
	chosen TEXT NOT NULL, -- the id of a value; empty for none
	offered TEXT NOT NULL, -- JSON of the setting with its values
	PRIMARY KEY (thread, agent, name)
) STRICT, WITHOUT ROWID;

-- Who pays for a run.
ALTER TABLE runs ADD COLUMN payer TEXT NOT NULL DEFAULT ''; -- sender_id of the person or the program whose question caused it; empty: nobody is known

-- The sums of runs that have ended, which stay when the runs are removed.
CREATE TABLE usage_days (
	workspace TEXT NOT NULL,
	day INTEGER NOT NULL, -- in the time zone of the workspace, in days since 1970
	channel TEXT NOT NULL, -- empty: a conversation of our API
	agent TEXT NOT NULL,
	person TEXT NOT NULL, -- sender_id of who pays; empty: nobody is known, or the person was forgotten
	questions INTEGER NOT NULL,
	answers INTEGER NOT NULL,
	failures INTEGER NOT NULL,
	work_ms INTEGER NOT NULL, -- the time of the attempts
	measured INTEGER NOT NULL, -- attempts whose tokens are known
	tokens_in INTEGER NOT NULL,
	tokens_out INTEGER NOT NULL,
	PRIMARY KEY (workspace, day, channel, agent, person)
) STRICT, WITHOUT ROWID;

-- Has one row: the runs that ended up to then are in usage_days.
CREATE TABLE usage_progress (
	id INTEGER PRIMARY KEY, -- always 1
	ended_at INTEGER NOT NULL
) STRICT;
