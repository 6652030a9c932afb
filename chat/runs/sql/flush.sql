-- One write for all runs of this process: renew their leases, append their new events, and learn who is to stop.
-- A run that another process has closed is missing from the answer; its events are not written.
WITH leased AS (
    UPDATE chat_run AS run
    SET lease_until = now() + make_interval(secs => %(lease)s)
    FROM accounts_user AS owner
    WHERE run.id = ANY(%(runs)s::uuid[]) AND run.finished_at IS NULL AND owner.id = run.owner_id
    RETURNING run.id, run.stop_requested OR NOT owner.is_active AS stop
), written AS (
    INSERT INTO chat_journalentry (run_id, first, last, events)
    SELECT entry.run_id, entry.first, entry.last, entry.events
    FROM jsonb_to_recordset(%(entries)s::jsonb) AS entry (run_id uuid, first int, last int, events jsonb)
    JOIN leased ON leased.id = entry.run_id
    -- A flush whose answer was lost on the way is repeated, perhaps with more events behind it; a server that hung
    -- may take up the first one after that.
    ON CONFLICT (run_id, first) DO UPDATE SET last = EXCLUDED.last, events = EXCLUDED.events
    WHERE EXCLUDED.last > chat_journalentry.last
)
SELECT id, stop
FROM leased
