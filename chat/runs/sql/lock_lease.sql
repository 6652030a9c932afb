-- Lock the lease of a run before its conversation, as all code that ends a run does. No row: the run has ended.
\set run 00000000-0000-0000-0000-000000000000

SELECT lease.run_id
FROM chat_lease AS lease
WHERE lease.run_id = :'run'
FOR UPDATE
