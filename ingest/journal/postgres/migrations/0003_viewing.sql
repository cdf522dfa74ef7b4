-- What the person in a thread is looking at besides, a JSON object; '' where nobody told.
ALTER TABLE threads ADD COLUMN viewing TEXT NOT NULL DEFAULT '';
