-- For this transaction only. A generic plan of these statements is up to forty times slower; on disks without
-- moving parts the index of words is worth more than the planner thinks; and where it guesses wrong how much
-- is readable, a join in nested loops takes minutes: the search itself goes without them.
SELECT
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('jit', 'off', true),
    set_config('random_page_cost', '1.1', true),
    set_config('enable_nestloop', %(nested_loops)s, true)
