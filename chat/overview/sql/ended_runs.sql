-- Runs that ended in a period: who asked, on which day, and the outcome, without any text. `unsure` is
-- computed as in judge_questions.sql, but ignores ratings and answers to pleasantries, and includes tasks
-- that need a language model.
\set since '2026-01-01'
\set until '2026-01-02'
\set zone 'UTC'
\set nothing '{Nothing}'
\set unsure '{Unsure}'
\set pleasantries '{Hello}'
-- Numbers of tokens above `most` count as `most`, and negative ones as 0; version 0.3.0 may have stored such
-- numbers.
\set most 1000000000

SELECT
    run.owner_id,
    (run.created_at AT TIME ZONE :'zone')::date AS day,
    run.first_word_ms,
    said.prompt,
    said.completion,
    CASE
        WHEN said.failed THEN 'failed'
        WHEN said.stopped THEN 'stopped'
        WHEN said.refused THEN 'refused'
        WHEN said.unsure THEN 'unsure'
        ELSE 'answered'
    END AS outcome
FROM chat_run AS run
CROSS JOIN LATERAL (
    SELECT
        coalesce(bool_or(answer.state IN ('failed', 'interrupted')), false) AS failed,
        coalesce(bool_or(answer.state = 'stopped'), false) AS stopped,
        coalesce(bool_or(answer.state = 'blocked' OR answer.content = any(:'nothing'::text[])), false) AS refused,
        coalesce(
            bool_or(
                answer.content ^@ any(:'unsure'::text[])
                OR (
                    answer.state = 'complete'
                    AND answer.content <> ''
                    AND answer.citations = '[]'::jsonb
                    AND answer.content <> all(:'pleasantries'::text[])
                )
            ),
            false
        ) AS unsure,
        coalesce(sum(least(greatest((answer.usage ->> 'prompt')::numeric, 0), :'most'::bigint)), 0)::bigint AS prompt,
        coalesce(sum(least(greatest((answer.usage ->> 'completion')::numeric, 0), :'most'::bigint)), 0)::bigint AS completion
    FROM history_message AS answer
    WHERE answer.exchange = run.id AND answer.role = 'assistant'
) AS said
WHERE run.finished_at > :'since'::timestamptz AND run.finished_at <= :'until'::timestamptz
