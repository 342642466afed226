-- deliveries: every message that went to a client, in a row, with what became of it there.
--
-- A delivery is settled by what comes next under its tag; `settled` is null while the client holds it.
-- `no_ack`, `prefetch` and `shared` are those of the consumer, or of the get; null where neither is in the trace.
-- `consumer` tells consumers apart that have had the same tag one after the other; 0 is a get.
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
