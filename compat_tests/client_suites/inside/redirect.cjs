// Loaded by the Node.js of a suite: does what sitecustomize.py does for Python.
const { Socket } = require('node:net');

const PORTS = JSON.parse(process.env.FAKEAMQP_SUITE_PORTS ?? '{}');
const HERE = ['127.0.0.1', 'localhost', '::1'];

const connect = Socket.prototype.connect;
Socket.prototype.connect = function (...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (options.port in PORTS && HERE.includes(options.host ?? 'localhost')) {
    Object.assign(options, { host: '127.0.0.1', port: PORTS[options.port] });
  }
  return connect.apply(this, args);
};
