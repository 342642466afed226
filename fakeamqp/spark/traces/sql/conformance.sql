-- conformance: frames and events that violate a rule of the protocol, each with the rule, the peer that violated it
-- (`broken_by`), and the id of the rule in the specification, if it is in there (`spec`).
--
-- Connections of other protocols than 0-9-1 are skipped, because these rules do not apply to them. If the opening of a
-- channel is not in the trace, only closes and contents are checked on it. Settlements that a client sends after the
-- broker has closed are not checked, because they may have been sent before.
WITH rules AS (
    SELECT * FROM VALUES
        ('channel-not-open', '0-9-1/channel/not-open', 'a frame on a channel that is not open'),
        ('after-channel-close', '0-9-1/channel/grammar', 'a frame from a peer that has closed the channel'),
        ('after-connection-close', '0-9-1/connection.close/stability',
            'a frame from a peer that has closed the connection'),
        ('content-unannounced', '0-9-1/content/unsolicited-header',
            'a content header without a method, or a body without a header'),
        ('content-overrun', '0-9-1/content/body-overrun', 'more bytes of body than the header announced'),
        ('content-incomplete', '0-9-1/content/incomplete', 'another frame before the content was complete'),
        ('tag-zero', '0-9-1/domain.delivery-tag/non-zero', 'a delivery whose tag is 0'),
        ('tag-not-increasing', NULL, 'a delivery whose tag is not above the earlier ones of the channel'),
        ('delivery-without-consumer', '0-9-1/basic.consume/consume-ok-first',
            'a delivery to a consumer before its basic.consume-ok'),
        ('delivery-after-cancel', '0-9-1/basic.cancel/stops', 'a delivery to a consumer that was cancelled'),
        ('delivery-made-up', NULL, 'a delivery frame for which no queue made a delivery'),
        ('delivery-not-sent', NULL, 'a delivery of a queue that was not sent to the client'),
        ('settles-nothing', '0-9-1/basic.ack/multiple-exists', 'a settlement of a tag that was not delivered'),
        ('settles-no-ack', '0-9-1/domain.no-ack/ack-after-no-ack',
            'a settlement of a delivery that needs none (no-ack)'),
        ('settled-twice', '0-9-1/basic.ack/multiple-exists', 'a second settlement of one delivery'),
        ('settlement-made-up', NULL, 'a queue settled a message that it had not delivered'),
        ('settlement-repeated', NULL, 'a queue settled a message for the second time'),
        ('confirm-unknown', NULL, 'a confirm without a publish'),
        ('confirmed-twice', NULL, 'a second confirm of one publish'),
        ('unconfirmed', NULL, 'a publish without a confirm, while a later publish was confirmed')
        AS (rule, spec, description)
),
other_protocols AS (
    SELECT DISTINCT run, alias FROM trace
    WHERE kind = 'connection' AND name = 'connected' AND text LIKE '%AMQP %' AND text NOT LIKE '%AMQP 0-0-9-1%'
),
checked AS (
    SELECT * FROM trace LEFT ANTI JOIN other_protocols USING (run, alias)
),
opened AS (
    SELECT DISTINCT run, alias, TRUE AS opened FROM checked WHERE kind = 'connection' AND name = 'connected'
),
closes AS (
    SELECT run, alias,
        min(number) FILTER (WHERE name = 'connection.close' AND direction = 'received') AS client_closes,
        min(number) FILTER (WHERE name = 'connection.close-ok' AND direction = 'received') AS client_closed,
        min(number) FILTER (WHERE name = 'connection.close' AND direction = 'sent') AS broker_closes,
        min(number) FILTER (WHERE name = 'connection.close-ok' AND direction = 'sent') AS broker_closed,
        min(number) FILTER (WHERE direction = 'sent') AS broker_ends
    FROM checked
    WHERE kind = 'frame' AND name IN ('connection.close', 'connection.close-ok')
    GROUP BY run, alias
),

-- 1. Frames of one peer on one channel, in order.
frames AS (
    SELECT run, number, time, alias, channel, session, direction, name, delivery_tag, consumer_tag,
        lag(name) OVER (PARTITION BY run, alias, channel, session, direction ORDER BY number) AS before,
        count_if(name = 'channel.close') OVER earlier > 0 AS closes,
        count_if(name = 'channel.close-ok') OVER earlier > 0 AS closed,
        size, body_size,
        coalesce(sum(IF(name = 'content body', size, 0)) OVER earlier, 0) AS octets
    FROM checked
    WHERE kind = 'frame' AND name <> 'heartbeat'
    WINDOW earlier AS (
        PARTITION BY run, alias, channel, session, direction ORDER BY number
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
contents AS (
    SELECT *,
        -- Missing bytes of the latest content before this frame.
        last_value(IF(name = 'content header', octets + coalesce(body_size, 0), NULL)) IGNORE NULLS OVER (
            PARTITION BY run, alias, channel, session, direction ORDER BY number
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) - octets AS due,
        coalesce(before IN ('basic.publish', 'basic.deliver', 'basic.get-ok', 'basic.return'), FALSE) AS begun,
        before IN ('content header', 'content body') AS going_on
    FROM frames
),
of_frames AS (
    SELECT run, number, time, alias, channel, session, direction, name, delivery_tag, consumer_tag,
        explode(array_compact(array(
            IF(channel > 0 AND session = 0 AND opened AND NOT coalesce(direction = 'received'
                AND number > broker_ends, FALSE), 'channel-not-open', NULL),
            IF(channel > 0 AND (closed OR closes AND name <> 'channel.close-ok'), 'after-channel-close', NULL),
            IF(direction = 'received' AND (number > client_closed
                    OR number > client_closes AND name <> 'connection.close-ok')
                OR direction = 'sent' AND (number > broker_closed
                    OR number > broker_closes AND name <> 'connection.close-ok'), 'after-connection-close', NULL),
            IF(before IS NOT NULL AND (name = 'content header' AND NOT begun
                OR name = 'content body' AND NOT going_on), 'content-unannounced', NULL),
            IF(name = 'content body' AND going_on AND size > due, 'content-overrun', NULL),
            IF(NOT name IN ('content header', 'content body', 'channel.close', 'channel.close-ok')
                AND (begun OR going_on AND due > 0), 'content-incomplete', NULL)
        ))) AS rule
    FROM contents LEFT JOIN opened USING (run, alias) LEFT JOIN closes USING (run, alias)
),

-- 2. Methods of one channel between its opening and its close, and the events of the queues for its deliveries.
methods AS (
    SELECT run, number, time, alias, channel, session, direction, name, delivery_tag, consumer_tag,
        coalesce(multiple, FALSE) AS multiple, requeue, no_ack, no_wait,
        kind = 'frame' AND direction = 'sent' AND name IN ('basic.deliver', 'basic.get-ok') AS delivers,
        kind = 'frame' AND direction = 'received'
            AND name IN ('basic.ack', 'basic.nack', 'basic.reject') AS settles,
        kind = 'frame' AND direction = 'sent' AND name IN ('basic.ack', 'basic.nack') AS confirms,
        kind = 'frame' AND direction = 'received' AND name = 'basic.publish' AS publishes,
        kind = 'model' AND name = 'delivered' AS delivered,
        kind = 'model' AND name IN ('acked', 'rejected', 'requeued') AS settled
    FROM checked
    WHERE session > 0 AND channel > 0 AND (
        kind = 'model' AND name IN ('consumer added', 'delivered', 'acked', 'rejected', 'requeued')
        OR kind = 'frame' AND name IN (
            'basic.deliver', 'basic.get-ok', 'basic.ack', 'basic.nack', 'basic.reject', 'basic.recover',
            'basic.recover-async', 'basic.get', 'basic.consume', 'basic.consume-ok', 'basic.cancel',
            'basic.cancel-ok', 'basic.publish', 'confirm.select', 'tx.rollback', 'channel.close'
        )
    )
    DISTRIBUTE BY run, alias, channel
),
counted AS (
    SELECT *,
        coalesce(max(IF(delivers, delivery_tag, NULL)) OVER earlier, -1) AS latest_tag,
        count_if(name = 'confirm.select' AND direction = 'received') OVER earlier > 0 AS confirming,
        count_if(name = 'tx.rollback' AND direction = 'received') OVER earlier > 0 AS rolled_back,
        count_if(name = 'channel.close' AND direction = 'sent') OVER earlier > 0 AS closed,
        max(IF(confirms AND multiple, delivery_tag, NULL)) OVER earlier AS confirmed_up_to,
        max(IF(confirms AND multiple, delivery_tag, NULL)) OVER whole AS confirmed_up_to_at_last,
        max(IF(confirms, delivery_tag, NULL)) OVER whole AS latest_confirm
    FROM methods
    WINDOW whole AS (PARTITION BY run, alias, channel, session),
        earlier AS (
            PARTITION BY run, alias, channel, session ORDER BY number
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
numbered AS (
    SELECT *,
        -- The tag up to which a settlement, or a recover, settles deliveries.
        max(CASE
            WHEN settles AND multiple THEN IF(delivery_tag = 0, latest_tag, delivery_tag)
            WHEN name IN ('basic.recover', 'basic.recover-async') AND requeue THEN latest_tag
        END) OVER earlier AS settled_up_to,
        count_if(publishes AND confirming) OVER (
            PARTITION BY run, alias, channel, session ORDER BY number
        ) AS publishes_so_far
    FROM counted
    WINDOW earlier AS (
        PARTITION BY run, alias, channel, session ORDER BY number
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
of_consumers AS (
    SELECT *,
        last_value(CASE
            WHEN name = 'basic.consume-ok' AND direction = 'sent' THEN TRUE
            WHEN name = 'basic.consume' AND direction = 'received' AND no_wait THEN TRUE
            WHEN name IN ('basic.cancel', 'basic.cancel-ok') AND direction = 'sent' THEN FALSE
            WHEN name = 'basic.cancel' AND direction = 'received' AND no_wait THEN FALSE
        END) IGNORE NULLS OVER of_consumer AS consuming,
        last_value(IF(name = 'consumer added' OR name = 'basic.get' AND direction = 'received', no_ack, NULL))
            IGNORE NULLS OVER of_consumer AS needs_no_ack,
        CASE
            WHEN delivers OR settles OR delivered OR settled THEN delivery_tag
            WHEN confirms THEN delivery_tag
            WHEN publishes AND confirming THEN publishes_so_far
        END AS tag,
        confirms OR publishes AS of_publish
    FROM numbered
    WINDOW of_consumer AS (PARTITION BY run, alias, channel, session, consumer_tag ORDER BY number)
),
of_tags AS (
    SELECT *,
        count_if(delivers) OVER so_far AS deliveries,
        count_if(delivers) OVER whole AS deliveries_at_last,
        count_if(delivered) OVER so_far AS made,
        count_if(settles) OVER so_far AS settlements,
        count_if(settled) OVER so_far AS endings,
        last_value(IF(delivers, needs_no_ack, NULL)) IGNORE NULLS OVER so_far AS settled_by_itself,
        last_value(IF(delivered OR settled, name, NULL)) IGNORE NULLS OVER (
            PARTITION BY run, alias, channel, session, of_publish, tag ORDER BY number
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS happened_before,
        count_if(confirms) OVER so_far AS confirmations,
        count_if(confirms) OVER whole AS confirmations_at_last
    FROM of_consumers
    WHERE tag IS NOT NULL
    WINDOW whole AS (PARTITION BY run, alias, channel, session, of_publish, tag),
        so_far AS (
            PARTITION BY run, alias, channel, session, of_publish, tag ORDER BY number
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
),
of_methods AS (
    SELECT run, number, time, alias, channel, session, direction, name, delivery_tag, consumer_tag,
        explode(array_compact(array(
            CASE
                WHEN NOT delivers THEN NULL
                WHEN tag = 0 THEN 'tag-zero'
                WHEN tag <= latest_tag THEN 'tag-not-increasing'
            END,
            CASE
                WHEN NOT delivers OR name <> 'basic.deliver' THEN NULL
                WHEN consuming IS NULL THEN 'delivery-without-consumer'
                WHEN NOT consuming THEN 'delivery-after-cancel'
            END,
            IF(delivers AND deliveries > made, 'delivery-made-up', NULL),
            IF(delivered AND deliveries_at_last = 0, 'delivery-not-sent', NULL),
            CASE
                WHEN NOT settles OR closed OR multiple AND tag = 0 OR coalesce(number > broker_ends, FALSE) THEN NULL
                WHEN deliveries = 0 THEN 'settles-nothing'
                WHEN settled_by_itself THEN 'settles-no-ack'
                WHEN NOT rolled_back AND (settlements > 1 OR settled_up_to >= tag) THEN 'settled-twice'
            END,
            CASE
                WHEN NOT settled THEN NULL
                WHEN happened_before IS NULL THEN 'settlement-made-up'
                WHEN happened_before <> 'delivered' THEN 'settlement-repeated'
            END,
            CASE
                WHEN NOT confirms THEN NULL
                WHEN tag = 0 OR tag > publishes_so_far THEN 'confirm-unknown'
                WHEN confirmations > 1 OR confirmed_up_to >= tag THEN 'confirmed-twice'
            END,
            IF(publishes AND confirmations_at_last = 0 AND coalesce(confirmed_up_to_at_last, 0) < tag
                AND latest_confirm > tag, 'unconfirmed', NULL)
        ))) AS rule
    FROM of_tags LEFT JOIN closes USING (run, alias)
)
SELECT run, number, time, alias, channel, session, rule,
    IF(direction = 'received' AND rule <> 'unconfirmed', 'client', 'broker') AS broken_by,
    spec, description, name, delivery_tag, consumer_tag
FROM (SELECT * FROM of_frames UNION ALL SELECT * FROM of_methods) JOIN rules USING (rule)
ORDER BY run, number, rule
