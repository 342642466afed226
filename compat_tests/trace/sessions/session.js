// node session.js URL: amqplib declares, publishes with confirms, consumes, and asks for a queue that is not there.
const amqplib = require("amqplib");

async function session(url) {
  const connection = await amqplib.connect(url);
  const channel = await connection.createConfirmChannel();
  await channel.assertExchange("js-events", "topic", { durable: false });
  await channel.assertQueue("js-orders", { durable: true, deadLetterExchange: "", maxLength: 10 });
  await channel.bindQueue("js-orders", "js-events", "order.*");
  const options = { headers: { kind: "order", size: 2.5, token: "abc" }, messageId: "m1", persistent: true };
  channel.publish("js-events", "order.new", Buffer.from(JSON.stringify({ id: 1 })), options);
  channel.sendToQueue("js-orders", Buffer.from("two"));
  await channel.waitForConfirms();
  await channel.prefetch(1);
  let left = 3;
  await new Promise((resolve) => {
    channel.consume("js-orders", (message) => {
      if (left === 3) channel.nack(message);
      else channel.ack(message);
      left -= 1;
      if (!left) resolve();
    }, { consumerTag: "me" });
  });
  await channel.cancel("me");
  await channel.deleteQueue("js-orders");
  await channel.deleteExchange("js-events");
  const other = await connection.createChannel();
  other.on("error", () => {});
  await other.checkQueue("missing").catch(() => {});
  await channel.close();
  await connection.close();
}

session(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
