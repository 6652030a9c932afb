-- For this transaction only: a generic plan of these statements is up to forty times slower, and on disks
-- without moving parts the index of words is worth more than the planner thinks.
SELECT
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('jit', 'off', true),
    set_config('random_page_cost', '1.1', true)
