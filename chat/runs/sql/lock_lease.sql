-- Lock the lease of a run before its conversation, as everybody does who ends a run. No row where it has ended already.
\set run 00000000-0000-0000-0000-000000000000

SELECT lease.run_id
FROM chat_lease AS lease
WHERE lease.run_id = :'run'
FOR UPDATE
