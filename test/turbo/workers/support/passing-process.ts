/** Listens, and passes each connection on to its parent as soon as it has read something of it. */
import { createServer } from 'node:net';
import { handOver } from '../../../../src/turbo/workers/worker-server.ts';

const server = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on('error', () => undefined);
  socket.once('data', (bytes) => {
    socket.removeAllListeners('data');
    socket.unshift(bytes);
    handOver(
      socket,
      (message, passed, done) => void process.send?.(message, passed, {}, done),
      () => undefined,
    );
  });
});
process.once('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
});
