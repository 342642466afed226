-- For a dead letter that is delivered at once, the event "delivered" is before the event "enqueued".
WITH steps AS (
    SELECT run, number, time, name, virtual_host, queue, message,
        lag(name) OVER in_queue AS before,
        lag(time) OVER in_queue AS time_before,
        lead(name) OVER in_queue AS after,
        lead(time) OVER in_queue AS time_after
    FROM trace
    WHERE kind = 'model' AND message IS NOT NULL
        AND name IN ('enqueued', 'delivered', 'acked', 'rejected', 'requeued')
    WINDOW in_queue AS (PARTITION BY run, message, queue ORDER BY number)
),
firsts AS (
    SELECT virtual_host, queue,
        CASE
            WHEN before = 'enqueued' THEN time - time_before
            WHEN after = 'enqueued' AND time_after = time THEN 0
        END AS latency
    FROM steps
    WHERE name = 'delivered' AND (before IS NULL OR before NOT IN ('delivered', 'requeued'))
)
SELECT virtual_host, queue, messages, quantiles[0] AS p50, quantiles[1] AS p95, quantiles[2] AS p99, max
FROM (
    SELECT virtual_host, queue, count(latency) AS messages,
        percentile_approx(latency, array(0.5D, 0.95D, 0.99D)) AS quantiles, max(latency) AS max
    FROM firsts
    WHERE latency IS NOT NULL
    GROUP BY virtual_host, queue
)
ORDER BY virtual_host, queue
