-- One write for all runs of this process: renew their leases, append their new events, and return which ones
-- must stop. A run that another process has closed has no lease: it is missing in the result, and its events
-- are not written.
WITH leased AS (
    UPDATE chat_lease AS lease
    SET until = now() + make_interval(secs => :'lease')
    WHERE lease.run_id = ANY(:'runs'::uuid[])
    RETURNING lease.run_id
), written AS (
    INSERT INTO chat_journalentry (run_id, first, last, events)
    SELECT entry.run_id, entry.first, entry.last, entry.events
    FROM jsonb_to_recordset(:'entries'::jsonb) AS entry (run_id uuid, first int, last int, events jsonb)
    JOIN leased ON leased.run_id = entry.run_id
    -- A flush whose result was lost is repeated, perhaps with more events. If the server hung, it may execute the
    -- first flush after the second.
    ON CONFLICT (run_id, first) DO UPDATE SET last = EXCLUDED.last, events = EXCLUDED.events
    WHERE EXCLUDED.last > chat_journalentry.last
)
SELECT run.id, run.stop_requested OR NOT owner.is_active AS stop
FROM leased
JOIN chat_run AS run ON run.id = leased.run_id
JOIN accounts_user AS owner ON owner.id = run.owner_id
