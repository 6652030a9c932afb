-- By the index of words, once for each language: the passages that hold all words of one of the groups sought.
-- OFFSET keeps the planner from joining the other way round. What is readable of them is decided next.
sought AS MATERIALIZED (
    SELECT grouped.language, grouped.common, string_agg('(' || grouped.query || ')', ' | ')::tsquery AS query
    FROM (
        SELECT words.language, member.common, string_agg('(' || words.query::text || ')', ' & ') AS query
        FROM unnest(%(groups)s::int[], %(members)s::int[], %(common)s::boolean[]) AS member (place, number, common)
        JOIN words ON words.number = member.number
        GROUP BY words.language, member.common, member.place
    ) AS grouped
    GROUP BY grouped.language, grouped.common
),

rare AS MATERIALIZED (
    SELECT sought.language, passage.passage_id, passage.document_id, passage.search
    FROM sought
    CROSS JOIN LATERAL (
        SELECT passage.passage_id, passage.document_id, passage.search
        FROM ingestion_passagewords AS passage
        WHERE NOT sought.common AND passage.search @@ sought.query
        OFFSET 0
    ) AS passage
),

-- Where these are hardly any, some of those with commoner words: the first that the caller may read.
found AS MATERIALIZED (
    SELECT rare.language, rare.passage_id, rare.document_id, rare.search FROM rare
    UNION ALL
    SELECT sought.language, passage.passage_id, passage.document_id, passage.search
    FROM sought
    CROSS JOIN LATERAL (
        SELECT passage.passage_id, passage.document_id, passage.search
        FROM ingestion_passagewords AS passage
        WHERE
            sought.common
            AND (SELECT count(*) FROM rare) * %(visible)s < %(depth)s * %(every)s::double precision
            AND passage.search @@ sought.query
            AND (passage.passage_id IN (SELECT rare.passage_id FROM rare)) IS NOT TRUE
            AND (
                SELECT true
                FROM ingestion_document AS document
                WHERE
                    document.id = passage.document_id
                    AND
-- include: allowed
            )
        LIMIT %(max_common)s
    ) AS passage
)
