<?php
/* php session.php HOST PORT: php-amqplib declares, publishes with confirms, consumes, and uses a transaction. */

require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

$connection = new AMQPStreamConnection($argv[1], $argv[2], 'guest', 'guest', '/');
$channel = $connection->channel();
$channel->exchange_declare('php-events', 'direct', false, true, false);
$channel->queue_declare('php-orders', false, true, false, false, false, new AMQPTable(['x-max-length' => 10]));
$channel->queue_bind('php-orders', 'php-events', 'created');
$channel->confirm_select();
$headers = new AMQPTable(['text' => 'word', 'number' => 5, 'token' => 'abc']);
foreach (['one', 'two'] as $body) {
    $properties = ['content_type' => 'text/plain', 'delivery_mode' => 2, 'application_headers' => $headers];
    $channel->basic_publish(new AMQPMessage($body, $properties), 'php-events', 'created');
}
$channel->wait_for_pending_acks(20);
$left = 2;
$take = function ($message) use (&$left) {
    $message->ack();
    $left--;
};
$channel->basic_qos(0, 1, false);
$tag = $channel->basic_consume('php-orders', '', false, false, false, false, $take);
while ($left) {
    $channel->wait(null, false, 20);
}
$channel->basic_cancel($tag);
$other = $connection->channel();
$other->tx_select();
$other->basic_publish(new AMQPMessage('committed'), '', 'php-orders');
$other->tx_commit();
$other->basic_get('php-orders', true);
$other->queue_delete('php-orders');
$other->exchange_delete('php-events');
$channel->close();
$other->close();
$connection->close();
