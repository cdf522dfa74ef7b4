-- The id of a message is that of one message. An import of messages that were there gave them a second time: each further one gets an id
-- of its own.
--- sqlite
UPDATE messages SET id = lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))
--- postgres
UPDATE messages SET id = gen_random_uuid()::text
--- both
	WHERE EXISTS (SELECT 1 FROM messages AS earlier WHERE earlier.id = messages.id AND earlier.row < messages.row);
DROP INDEX messages_id;
CREATE UNIQUE INDEX messages_id ON messages (id);
