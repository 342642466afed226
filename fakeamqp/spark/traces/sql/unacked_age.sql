WITH ages AS (
    SELECT virtual_host, queue, settled,
        settled_time - deliveries.time AS age,
        CASE WHEN settled IS NULL THEN ended - deliveries.time END AS age_at_the_end
    FROM deliveries JOIN (SELECT run, max(time) AS ended FROM trace GROUP BY run) USING (run)
    WHERE settled IS NOT NULL OR NOT no_ack
)
SELECT virtual_host, queue, settled, quantiles[0] AS p50, quantiles[1] AS p95, quantiles[2] AS p99, max,
    unsettled, oldest_unsettled
FROM (
    SELECT virtual_host, queue, count(settled) AS settled,
        percentile_approx(age, array(0.5D, 0.95D, 0.99D)) AS quantiles, max(age) AS max,
        count_if(settled IS NULL) AS unsettled, max(age_at_the_end) AS oldest_unsettled
    FROM ages
    GROUP BY virtual_host, queue
)
ORDER BY virtual_host, queue
