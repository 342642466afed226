-- unacked_high_water: the maximum of unsettled messages of each consumer, and of all consumers of a channel.
--
-- `scope` is 'consumer' or 'channel'. The limit of a consumer is its prefetch at the start; the limit of a channel is
-- that of the latest basic.qos with `global` (0-9-1/basic.qos/prefetch-count-01). Gets have no limit
-- (0-9-1/basic.qos/get-unaffected). Each delivery is compared with the limit at its time. `exceedances` counts
-- deliveries beyond the limit, `first_exceedance` is the number of the first one; a correct broker has 0 and null.
WITH held AS (
    SELECT run, alias, channel, session, consumer_tag, consumer, coalesce(prefetch, 0) AS prefetch, shared,
        stack(2, number, 1, settled_number, -1) AS (number, step)
    FROM deliveries
    WHERE NOT no_ack AND consumer_tag IS NOT NULL
),
steps AS (
    SELECT run, alias, channel, session, 'consumer' AS scope, consumer_tag, consumer, prefetch AS limit, number, step
    FROM held
    WHERE number IS NOT NULL
    UNION ALL
    SELECT run, alias, channel, session, 'channel', NULL, NULL, NULL, number, step
    FROM held
    WHERE number IS NOT NULL AND shared
    UNION ALL
    SELECT run, alias, channel, session, 'channel', NULL, NULL, IF(shared, prefetch, 0), number, 0
    FROM trace
    WHERE kind = 'frame' AND name = 'basic.qos' AND direction = 'received'
),
levels AS (
    SELECT run, alias, channel, session, scope, consumer_tag, consumer, number, step,
        sum(step) OVER so_far AS level,
        coalesce(last_value(limit) IGNORE NULLS OVER so_far, 0) AS limit
    FROM steps
    WINDOW so_far AS (
        PARTITION BY run, alias, channel, session, scope, consumer_tag, consumer ORDER BY number
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
SELECT run, alias, channel, session, scope, consumer_tag, consumer,
    count(*) AS deliveries,
    max(level) AS high_water,
    min_by(number, struct(-level, number)) AS high_water_number,
    max(limit) AS prefetch,
    count_if(limit > 0 AND level > limit) AS exceedances,
    min(CASE WHEN limit > 0 AND level > limit THEN number END) AS first_exceedance
FROM levels
WHERE step = 1
GROUP BY run, alias, channel, session, scope, consumer_tag, consumer
ORDER BY exceedances DESC, high_water DESC, run, alias, channel, session, scope, consumer_tag, consumer
