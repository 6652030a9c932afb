-- Settings for the transaction of a search.
--
-- The kind of plan depends on the size of the corpus: in a large corpus, a generic plan makes these statements up to
-- forty times slower; in a small one, planning takes longer than executing any plan. JIT compilation slows the
-- statements down, so it is off. On SSDs, the index of words is more useful than the planner assumes by default. Nested
-- loops are disabled because they take minutes if the planner misjudges how much is readable. The index of vectors is
-- scanned, roughly in the order of their distance, until enough readable vectors have been found, but only up to
-- `max_scanned` vectors.
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
