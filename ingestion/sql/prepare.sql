-- Settings of this transaction, and how much the caller may search, counted until it is enough to know.
--
-- A generic plan of these statements is up to forty times slower, and so is compiling them; on disks without
-- moving parts the index of words is worth more than the planner thinks; where it guesses wrong how much is
-- readable, a join in nested loops takes minutes, so search goes without them. The index of vectors is read on
-- until enough readable ones were met, in about the order of their distance.
WITH everything AS MATERIALIZED (
    SELECT greatest(documents.reltuples, 0)::bigint AS documents, greatest(passages.reltuples, 0)::bigint AS passages
    FROM pg_class AS documents, pg_class AS passages
    WHERE
        documents.oid = 'ingestion_document'::regclass
        AND passages.oid = 'ingestion_passagewords'::regclass
)

SELECT
    visible.documents,
    visible.passages,
    everything.documents AS all_documents,
    everything.passages AS all_passages,
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('jit', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true),
    set_config('random_page_cost', '1.1', true),
    set_config('enable_nestloop', 'off', true),
    set_config('work_mem', '32MB', true),
    set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.ef_search', %(ef_search)s::text, true),
    set_config('hnsw.max_scan_tuples', %(most_scanned)s::text, true)
FROM (
    SELECT count(*) AS documents, coalesce(sum(document.passage_count), 0)::bigint AS passages
    FROM (
        SELECT document.passage_count
        FROM ingestion_document AS document
        WHERE
-- include: allowed
        -- Twice the documents that usually have enough passages.
        LIMIT (
            SELECT greatest(1000, 2 * %(enough)s * everything.documents / greatest(everything.passages, 1)) FROM everything
        )
    ) AS document
) AS visible
CROSS JOIN everything
