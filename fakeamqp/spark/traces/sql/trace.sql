-- trace: one row per event. {raw} is a recording as Spark reads it.
WITH connections AS (
    SELECT run, alias, max(fields.virtual_host) AS of_connection
    FROM {raw}
    WHERE kind = 'frame' AND name = 'connection.open'
    GROUP BY run, alias
)
SELECT run, number, time, connection, alias, kind, name, direction,
    coalesce(channel, facts.channel) AS channel,
    CAST(count_if(name = 'channel.open' AND direction = 'received') OVER (
        PARTITION BY run, alias, coalesce(channel, facts.channel) ORDER BY number
    ) AS INT) AS session,
    size,
    coalesce(facts.virtual_host, of_connection) AS virtual_host,
    coalesce(fields.exchange, facts.exchange, facts.message.message.exchange) AS exchange,
    coalesce(fields.routing_key, facts.routing_key, facts.message.message.routing_key) AS routing_key,
    coalesce(fields.queue, facts.queue) AS queue,
    coalesce(fields.consumer_tag, facts.consumer) AS consumer_tag,
    coalesce(fields.delivery_tag, facts.delivery_tag) AS delivery_tag,
    fields.multiple, fields.requeue,
    coalesce(fields.redelivered, facts.redelivered) AS redelivered,
    coalesce(fields.no_ack, facts.no_ack) AS no_ack,
    fields.no_wait,
    coalesce(fields.prefetch_count, facts.prefetch) AS prefetch,
    coalesce(fields.`global`, facts.shares_prefetch) AS shared,
    nullif(facts.message.message.number, 0) AS message,
    coalesce(properties.message_id, facts.message.message.properties.message_id) AS message_id,
    coalesce(properties.priority, facts.message.message.properties.priority) AS priority,
    coalesce(body_size, facts.message.message.size) AS body_size,
    coalesce(fields.reply_code, facts.code) AS reply_code,
    text
FROM {raw} LEFT JOIN connections USING (run, alias)
