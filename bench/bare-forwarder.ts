/**
 * A forwarder on `node:net` that reads nothing but lengths: what Node itself costs. It decides nothing, limits nothing and reports nothing, so no gateway on Node
 * can be faster. Argument: the upstream's port. Prints its own port.
 */
import { connect, createServer, type Socket } from 'node:net';

const upstreamPort = Number(process.argv[2]);
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const LENGTH = /\r\ncontent-length: *(\d+)/i;

/** Counts the bytes of messages that have a Content-Length, or no body. Calls `ended` after the last byte of each. */
function messageCounter(ended: () => void): (chunk: Buffer) => void {
  let head: Buffer | undefined;
  let missing = 0;
  return (chunk) => {
    let rest = chunk;
    if (missing === 0) {
      rest = head === undefined ? chunk : Buffer.concat([head, chunk]);
      const end = rest.indexOf(END_OF_HEAD);
      if (end < 0) {
        head = rest;
        return;
      }
      head = undefined;
      missing = Number(LENGTH.exec(rest.toString('latin1', 0, end + 2))?.[1] ?? 0);
      rest = rest.subarray(end + END_OF_HEAD.length);
    }
    missing -= rest.length;
    if (missing <= 0) {
      missing = 0;
      ended();
    }
  };
}

const idle: Socket[] = [];

function connectUpstream(): Socket {
  const socket = connect({ port: upstreamPort, host: '127.0.0.1', noDelay: true });
  // A lost connection must fail the measurement.
  socket.on('error', (error) => {
    throw error;
  });
  return socket;
}

const server = createServer({ noDelay: true }, (client) => {
  let upstream: Socket | undefined;
  const free = (): void => {
    if (upstream === undefined) return;
    upstream.removeAllListeners('data');
    idle.push(upstream);
    upstream = undefined;
  };
  const take = (): Socket => {
    const socket = idle.pop() ?? connectUpstream();
    const count = messageCounter(free);
    socket.on('data', (chunk: Buffer) => {
      client.write(chunk);
      count(chunk);
    });
    return socket;
  };
  client.on('data', (chunk: Buffer) => {
    upstream ??= take();
    upstream.write(chunk);
  });
  client.on('error', () => upstream?.destroy());
  client.on('close', () => upstream?.destroy());
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : 0}\n`);
});
process.on('disconnect', () => process.exit(0));
