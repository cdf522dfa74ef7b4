-- The people whom no list admits and who have asked for the agent, with what was decided about each.
CREATE TABLE strangers (
	workspace TEXT NOT NULL,
	sender_id TEXT NOT NULL,
	name TEXT NOT NULL, -- of the person; empty: unknown
	state TEXT NOT NULL, -- asked, once, always, no, expired
	question TEXT NOT NULL, -- id of the question to the approvers: that of the message which waits; empty: an operator has decided without one
	envelope INTEGER NOT NULL, -- of that message; 0: none
	agent TEXT NOT NULL, -- of the message's channel
	approvers TEXT NOT NULL, -- JSON: the platform's ids of those whom the question went to
	told INTEGER NOT NULL DEFAULT 0, -- 1: their direct messages are stored
	decided_by TEXT NOT NULL DEFAULT '', -- sender_id of the approver, or the operator
	changed_at INTEGER NOT NULL,
	due_at INTEGER, -- when a node must look at it; null: never
	PRIMARY KEY (workspace, sender_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX strangers_due ON strangers (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX strangers_open ON strangers (workspace) WHERE state = 'asked';
CREATE INDEX strangers_admitted ON strangers (workspace, sender_id) WHERE state = 'always';
CREATE UNIQUE INDEX strangers_question ON strangers (question) WHERE question <> '';
