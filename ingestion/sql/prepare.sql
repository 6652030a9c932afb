-- Settings of this transaction.
--
-- In a large corpus a generic plan of these statements is up to forty times slower, and so is compiling them; in a
-- small one planning takes longer than any plan. On disks without moving parts the index of words is worth more than
-- the planner thinks; where it guesses wrong how much is readable, a join in nested loops takes minutes, so search goes
-- without them. The index of vectors is read on until enough readable ones were met, in about the order of their
-- distance.
\set plan_cache_mode force_custom_plan
\set ef_search 300
\set max_scanned 40000

SELECT
    set_config('plan_cache_mode', :'plan_cache_mode', true),
    set_config('jit', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true),
    set_config('random_page_cost', '1.1', true),
    set_config('enable_nestloop', 'off', true),
    set_config('work_mem', '32MB', true),
    set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.ef_search', :'ef_search'::text, true),
    set_config('hnsw.max_scan_tuples', :'max_scanned'::text, true);
