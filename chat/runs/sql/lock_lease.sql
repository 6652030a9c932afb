-- Lock the lease of a run. Every transaction that ends a run locks the lease before the conversation. Returns
-- no row if the run has ended.
\set run 00000000-0000-0000-0000-000000000000

SELECT lease.run_id
FROM chat_lease AS lease
WHERE lease.run_id = :'run'
FOR UPDATE
