-- fifo_violations: first deliveries after the delivery of a message that was enqueued later.
--
-- Messages of one priority keep their order from a queue to one channel, unless they are redelivered
-- (0-9-1/server-model/order-preserved). So each channel (0-9-1/server-model/weak-fifo) and each priority is checked
-- on its own. Redeliveries, dead letters and delayed messages are skipped. `overtaken_by` is the latest enqueued
-- message that was delivered before.
WITH steps AS (
    SELECT run, number, name, alias, channel, session, queue, consumer_tag, delivery_tag, redelivered, message,
        coalesce(priority, 0) AS priority
    FROM trace
    WHERE kind = 'model' AND message IS NOT NULL
        AND name IN ('enqueued', 'delivered', 'acked', 'rejected', 'requeued', 'dead-lettered', 'delay over')
    DISTRIBUTE BY run, message
),
rerouted AS (
    SELECT *, count_if(name IN ('dead-lettered', 'delay over')) OVER (
        PARTITION BY run, message ORDER BY number
    ) > 0 AS rerouted
    FROM steps
),
places AS (
    SELECT *, lag(name) OVER in_queue AS before, lag(number) OVER in_queue AS place
    FROM rerouted
    WHERE name NOT IN ('dead-lettered', 'delay over')
    WINDOW in_queue AS (PARTITION BY run, message, queue ORDER BY number)
),
firsts AS (
    SELECT *, max(struct(place, message, number)) OVER (
        PARTITION BY run, alias, channel, session, queue, priority ORDER BY number
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS ahead
    FROM places
    WHERE name = 'delivered' AND before = 'enqueued' AND NOT redelivered AND NOT rerouted
)
SELECT run, number, alias, channel, session, queue, consumer_tag, delivery_tag, priority, message,
    place AS enqueued_number, ahead.message AS overtaken_by, ahead.number AS overtaken_by_number
FROM firsts
WHERE place < ahead.place
ORDER BY run, number
