-- Settings of this transaction, and how much the caller may search: estimated from a sample of documents where
-- it is clearly more than `enough`, else counted.
--
-- A generic plan of these statements is up to forty times slower, and so is compiling them; on disks without
-- moving parts the index of words is worth more than the planner thinks; where it guesses wrong how much is
-- readable, a join in nested loops takes minutes, so search goes without them. The index of vectors is read on
-- until enough readable ones were met, in about the order of their distance.
WITH probed AS MATERIALIZED (
    SELECT count(*) AS documents, coalesce(avg(document.passage_count), 0) AS passages_each
    FROM ingestion_document AS document
    WHERE
        document.id = ANY(ARRAY(
-- include: probes
        ))
        AND
-- include: allowed
),

estimated AS MATERIALIZED (
    SELECT
        probed.documents AS met,
        (probed.documents * probed.passages_each * greatest(1, given.last_value::numeric / %(probes)s))::bigint AS passages
    FROM probed
    CROSS JOIN ingestion_document_id_seq AS given
)

SELECT
    CASE
        WHEN estimated.met >= 20 AND estimated.passages > 2 * %(enough)s THEN estimated.passages
        ELSE (
            SELECT coalesce(sum(document.passage_count), 0)::bigint
            FROM ingestion_document AS document
            WHERE
-- include: by_lists
                AND
-- include: allowed
        )
    END AS visible,
    (
        SELECT greatest(known.reltuples, 0)::bigint FROM pg_class AS known WHERE known.oid = 'ingestion_passagewords'::regclass
    ) AS every,
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('jit', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true),
    set_config('random_page_cost', '1.1', true),
    set_config('enable_nestloop', 'off', true),
    set_config('work_mem', '32MB', true),
    set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.ef_search', %(ef_search)s::text, true),
    set_config('hnsw.max_scan_tuples', %(most_scanned)s::text, true)
FROM estimated
