-- By the index of words, once for each language: the passages that hold all words of one of the groups sought.
-- OFFSET keeps the planner from joining the other way round. What is readable of them is decided next.
sought AS MATERIALIZED (
    SELECT grouped.language, string_agg('(' || grouped.query || ')', ' | ')::tsquery AS query
    FROM (
        SELECT words.language, string_agg('(' || words.query::text || ')', ' & ') AS query
        FROM unnest(%(groups)s::int[], %(members)s::int[]) AS member (place, number)
        JOIN words ON words.number = member.number
        GROUP BY words.language, member.place
    ) AS grouped
    GROUP BY grouped.language
),

found AS MATERIALIZED (
    SELECT sought.language, passage.passage_id, passage.document_id, passage.search
    FROM sought
    CROSS JOIN LATERAL (
        SELECT passage.passage_id, passage.document_id, passage.search
        FROM ingestion_passagewords AS passage
        WHERE passage.search @@ sought.query
        OFFSET 0
    ) AS passage
)
