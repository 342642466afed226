-- deliveries: one row per delivery to a client, with its settlement.
--
-- The next event with the same tag settles a delivery; `settled` is null without one.
-- `no_ack`, `prefetch` and `shared` are those of the consumer or the get; null if neither is in the trace.
-- `consumer` numbers consecutive consumers with the same tag; 0 is a get.
WITH steps AS (
    SELECT run, number, time, kind, name, alias, channel, session, virtual_host, queue, consumer_tag,
        delivery_tag, redelivered, message, priority, no_ack, prefetch, shared
    FROM trace
    WHERE kind = 'model' AND name IN ('consumer added', 'delivered', 'acked', 'rejected', 'requeued')
        OR kind = 'frame' AND name = 'basic.get' AND direction = 'received'
    DISTRIBUTE BY run, alias, channel
),
held AS (
    SELECT * EXCEPT (no_ack, prefetch, shared),
        last_value(no_ack) IGNORE NULLS OVER reader AS no_ack,
        last_value(prefetch) IGNORE NULLS OVER reader AS prefetch,
        last_value(shared) IGNORE NULLS OVER reader AS shared,
        count_if(name = 'consumer added') OVER reader AS consumer,
        lead(name) OVER under_its_tag AS settled,
        lead(number) OVER under_its_tag AS settled_number,
        lead(time) OVER under_its_tag AS settled_time
    FROM steps
    WINDOW reader AS (PARTITION BY run, alias, channel, session, consumer_tag ORDER BY number),
        under_its_tag AS (PARTITION BY run, alias, channel, session, delivery_tag ORDER BY number)
)
SELECT run, number, time, alias, channel, session, virtual_host, queue, consumer_tag, consumer, delivery_tag,
    redelivered, message, priority, no_ack, prefetch, shared,
    CASE WHEN settled <> 'delivered' THEN settled END AS settled,
    CASE WHEN settled <> 'delivered' THEN settled_number END AS settled_number,
    CASE WHEN settled <> 'delivered' THEN settled_time END AS settled_time
FROM held
WHERE name = 'delivered'
