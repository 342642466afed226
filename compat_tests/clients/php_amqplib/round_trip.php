<?php
/* php round_trip.php HOST PORT: php-amqplib over AMQP 0-8. It fails where the broker does not do what is expected. */

define('AMQP_PROTOCOL', '8.0');
require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

function expect($expected, $found, $what)
{
    if ($expected !== $found) {
        fwrite(STDERR, "$what: " . var_export($found, true) . ' instead of ' . var_export($expected, true) . "\n");
        exit(1);
    }
}

$connection = new AMQPStreamConnection($argv[1], $argv[2], 'guest', 'guest', '/');
$channel = $connection->channel();
$channel->exchange_declare('events', 'direct', false, false, false);
$channel->queue_declare('orders', false, false, false, false);
$channel->queue_bind('orders', 'events', 'created');

$body = str_repeat('0123456789', 20000); // More than a frame.
$headers = ['text' => 'word', 'number' => 5];
$properties = ['content_type' => 'text/plain', 'delivery_mode' => 2, 'correlation_id' => 'c'];
$message = new AMQPMessage($body, $properties + ['application_headers' => new AMQPTable($headers)]);
$channel->basic_publish($message, 'events', 'created');

$got = [];
$keep = function ($message) use (&$got) {
    $got[] = $message;
};
$tag = $channel->basic_consume('orders', '', false, false, false, false, $keep);
while (!$got) {
    $channel->wait(null, false, 20);
}
$first = $got[0];
expect($body, $first->getBody(), 'the body');
foreach ($properties as $name => $value) {
    expect($value, $first->get($name), $name);
}
expect($headers, $first->get('application_headers')->getNativeData(), 'headers');
expect(['events', 'created', false], [$first->getExchange(), $first->getRoutingKey(), $first->isRedelivered()], 'where');
$channel->basic_ack($first->getDeliveryTag());
$channel->basic_cancel($tag);

expect(null, $channel->basic_get('orders'), 'an empty queue');
$channel->tx_select();
$channel->basic_publish(new AMQPMessage('rolled back'), '', 'orders');
$channel->tx_rollback();
$channel->basic_publish(new AMQPMessage('committed'), '', 'orders');
$channel->tx_commit();
expect('committed', $channel->basic_get('orders', true)->getBody(), 'what was committed');

try {
    $channel->queue_declare('unknown', true);
    expect(true, false, 'an unknown queue');
} catch (AMQPProtocolChannelException $error) {
    expect(404, $error->getCode(), 'an unknown queue');
}
$connection->close();
