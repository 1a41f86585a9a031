-- Times are microseconds since 1970 UTC, money is micro-USD. JSON is text.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE plans (
    id      TEXT PRIMARY KEY,
    job     TEXT,
    plan    TEXT NOT NULL,
    made_at INTEGER NOT NULL
) STRICT;

CREATE TABLE jobs (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    spec       TEXT NOT NULL,
    state      TEXT NOT NULL,
    -- Grows with every change; a write names the version it was made for.
    version    INTEGER NOT NULL,
    note       TEXT,
    plan       TEXT REFERENCES plans (id),
    restarts   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at   INTEGER
) STRICT;
CREATE INDEX jobs_by_name ON jobs (name);
CREATE INDEX jobs_by_state ON jobs (state);

CREATE TABLE operations (
    id           TEXT PRIMARY KEY,
    job          TEXT NOT NULL REFERENCES jobs (id),
    kind         TEXT NOT NULL,
    plan         TEXT NOT NULL REFERENCES plans (id),
    -- The plan that was confirmed; later attempts have plans of their own. The same one is never begun twice.
    confirmed    TEXT NOT NULL UNIQUE REFERENCES plans (id),
    state        TEXT NOT NULL,
    phase        TEXT NOT NULL,
    steps        TEXT NOT NULL,
    actor        TEXT NOT NULL,
    attempt      INTEGER NOT NULL,
    -- The most that all machines together may cost an hour, as confirmed; NULL: only the job's own limit holds.
    ceiling      INTEGER,
    -- Where it must go, as the operator said; NULL: wherever it is best.
    target       TEXT,
    waiting_for  TEXT NOT NULL,
    reason       TEXT NOT NULL,
    error        TEXT,
    cancelled_by TEXT,
    lease_holder TEXT,
    lease_until  INTEGER,
    -- Grows with every change of the holder; a holder whose fence is old writes nothing any more.
    fence        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER
) STRICT;
CREATE INDEX operations_by_job ON operations (job);
-- One operation drives a job at a time; a terminate sets the others aside in the same transaction.
CREATE UNIQUE INDEX one_open_operation ON operations (job) WHERE state = 'open';

CREATE TABLE attempts (
    operation  TEXT NOT NULL REFERENCES operations (id),
    attempt    INTEGER NOT NULL,
    offer      TEXT NOT NULL,
    result     TEXT NOT NULL,
    error      TEXT,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    PRIMARY KEY (operation, attempt)
) STRICT;

-- A row a machine that was wished for; written before the call that asks for it.
CREATE TABLE intents (
    token         TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    operation     TEXT NOT NULL REFERENCES operations (id),
    job           TEXT NOT NULL REFERENCES jobs (id),
    attempt       INTEGER NOT NULL,
    node          INTEGER NOT NULL,
    provider      TEXT NOT NULL,
    offer         TEXT NOT NULL,
    shape         TEXT NOT NULL,
    max_price     INTEGER,
    state         TEXT NOT NULL,
    intended_at   INTEGER NOT NULL,
    -- Durable before the call; what is not sent was never asked for.
    sent_at       INTEGER,
    tries         INTEGER NOT NULL,
    unknown_since INTEGER,
    instance      TEXT,
    location      TEXT,
    bound_price   INTEGER,
    -- Cost up to the last change of the price, and when that was.
    accrued       INTEGER NOT NULL,
    accrued_until INTEGER,
    last_state    TEXT,
    last_seen     TEXT,
    observed_at   INTEGER,
    absent_since  INTEGER,
    notice_at     INTEGER,
    -- The durable intent to terminate.
    terminate_at  INTEGER,
    terminate_by  TEXT,
    alerted       INTEGER NOT NULL,
    gone_at       INTEGER,
    error         TEXT,
    UNIQUE (operation, attempt, node)
) STRICT;
CREATE INDEX intents_by_job ON intents (job);
CREATE INDEX intents_open ON intents (state) WHERE state IN ('intended', 'sent', 'accepted', 'unproven');
CREATE INDEX intents_by_instance ON intents (provider, instance);

-- Append-only; each entry carries the hash of the one before it.
CREATE TABLE events (
    seq       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    job       TEXT,
    job_name  TEXT,
    plan      TEXT,
    text      TEXT NOT NULL,
    data      TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash      TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_job ON events (job, seq);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TABLE alerts (
    seq             INTEGER PRIMARY KEY REFERENCES events (seq),
    -- The same trouble raises one alert, not one a minute.
    key             TEXT NOT NULL,
    since           INTEGER NOT NULL,
    job             TEXT,
    text            TEXT NOT NULL,
    acknowledged_by TEXT,
    acknowledged_at INTEGER,
    note            TEXT,
    cleared_at      INTEGER
) STRICT;
CREATE UNIQUE INDEX one_open_alert ON alerts (key) WHERE cleared_at IS NULL;

CREATE TABLE cooldowns (
    location TEXT NOT NULL,
    purchase TEXT NOT NULL,
    until    INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    PRIMARY KEY (location, purchase)
) STRICT;

-- Machines under our mark that no job owns, as last seen.
CREATE TABLE orphans (
    provider      TEXT NOT NULL,
    instance      TEXT NOT NULL,
    seen          TEXT NOT NULL,
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    absent_since  INTEGER,
    terminate_at  INTEGER,
    terminate_by  TEXT,
    gone_at       INTEGER,
    PRIMARY KEY (provider, instance)
) STRICT;
