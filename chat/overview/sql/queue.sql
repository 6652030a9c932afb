-- The number of waiting documents and of those being read, and for how many seconds the oldest has waited.
SELECT
    count(*) FILTER (WHERE job.status = 'todo') AS waiting,
    count(*) FILTER (WHERE job.status = 'doing') AS running,
    coalesce(
        extract(EPOCH FROM now() - min(event.at) FILTER (WHERE job.status = 'todo')), 0
    )::double precision AS seconds
FROM procrastinate_jobs AS job
LEFT JOIN procrastinate_events AS event ON event.job_id = job.id AND event.type = 'deferred'
WHERE job.status IN ('todo', 'doing') AND job.task_name = :'task'
