SELECT virtual_host, queue,
    count_if(name = 'delivered') AS deliveries,
    count_if(name = 'delivered' AND redelivered) AS redelivered,
    try_divide(count_if(name = 'delivered' AND redelivered), count_if(name = 'delivered')) AS rate,
    count_if(name = 'acked') AS acked,
    count_if(name = 'rejected') AS rejected,
    count_if(name = 'requeued') AS requeued
FROM trace
WHERE kind = 'model' AND name IN ('delivered', 'acked', 'rejected', 'requeued')
GROUP BY virtual_host, queue
ORDER BY virtual_host, queue
