/** Joins connections of one server with another one: `node relay.ts SOCKET PORT` listens on a Unix socket, which every network namespace sees, and connects to a port of its loopback. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Until the server is closed. */
export async function relay(listen: string | number, to: string | number): Promise<Server> {
  const server = createServer((from) => join(from, typeof to === 'string' ? connect(to) : connect(to, '127.0.0.1')));
  if (typeof listen === 'string') server.listen(listen);
  else server.listen(listen, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** One that is lost takes the other one along. */
function join(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.on('close', () => {
      if (!from.readableEnded) to.destroy();
    });
  }
}

if (process.argv[1] === import.meta.filename) {
  const [socket = '', port = ''] = process.argv.slice(2);
  await relay(socket, Number(port));
  process.stdout.write('listening\n');
}
