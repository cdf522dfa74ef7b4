-- The smallest tables for the four commits of a message.

CREATE TABLE envelopes (
	id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key  TEXT NOT NULL UNIQUE,
	done BOOLEAN NOT NULL DEFAULT false,
	body BYTEA NOT NULL
);

CREATE TABLE messages (
	id      BIGINT PRIMARY KEY,  -- that of its envelope
	channel TEXT NOT NULL,
	thread  TEXT NOT NULL,
	content TEXT NOT NULL
);

CREATE TABLE deliveries (
	message BIGINT PRIMARY KEY,
	state   TEXT NOT NULL,       -- sending, sent
	send_by TIMESTAMPTZ NOT NULL,
	sent    TEXT                 -- ts of the reply
);
