-- What a reply needs that is shown while it grows.

ALTER TABLE deliveries ADD COLUMN kind     TEXT NOT NULL DEFAULT 'post';  -- post, preview, remove, tell, unsign
ALTER TABLE deliveries ADD COLUMN replaces BIGINT NOT NULL DEFAULT 0;    -- the preview whose post it takes over, or takes away; 0: none
ALTER TABLE deliveries ADD COLUMN stream   BIGINT NOT NULL DEFAULT 0;    -- of a preview: it was begun as a stream
ALTER TABLE deliveries ADD COLUMN asker    TEXT NOT NULL DEFAULT '';      -- the platform's id of the user whom it answers
ALTER TABLE deliveries ADD COLUMN file     TEXT NOT NULL DEFAULT '';      -- JSON; empty: none

ALTER TABLE runs ADD COLUMN previews BIGINT NOT NULL DEFAULT 0;          -- how many it has begun
ALTER TABLE runs ADD COLUMN sign     TEXT NOT NULL DEFAULT '';            -- external id of the message with the sign of work; empty: none
ALTER TABLE runs ADD COLUMN sign_by  BIGINT NOT NULL DEFAULT 0;          -- when the call that put it there ends
