-- Whose account a machine was made in, as the provider tells it; NULL: from before this was written down.
ALTER TABLE intents ADD COLUMN account TEXT;
-- When what it runs on now began to run; started_at is when it first ran.
ALTER TABLE jobs ADD COLUMN running_since INTEGER;
UPDATE jobs SET running_since = started_at;
ALTER TABLE orphans ADD COLUMN account TEXT;
