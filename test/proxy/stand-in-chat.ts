/** A chat page that makes the same demands as Open WebUI: absolute paths, an `/api` of its own, a WebSocket, and a header that says who the user is. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface StandInChat {
  readonly port: number;
  /** Headers of each request as they arrived, by path. */
  readonly received: Map<string, IncomingHttpHeaders>;
  close(): void;
}

const PAGE = '<!doctype html><title>Chat</title><p id="user"></p><p id="socket"></p><script src="/_app/app.js"></script>';
const SCRIPT = `
document.cookie = 'own=1; path=/';
fetch('/api/me').then((answer) => answer.text()).then((text) => (document.getElementById('user').textContent = text));
const socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws');
socket.onmessage = ({ data }) => (document.getElementById('socket').textContent = data);
`;
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export async function startStandInChat(): Promise<StandInChat> {
  const received = new Map<string, IncomingHttpHeaders>();
  const server = createServer((req, res) => {
    received.set(req.url ?? '', req.headers);
    if (req.url === '/') res.setHeader('content-type', 'text/html').end(PAGE);
    else if (req.url === '/_app/app.js') res.setHeader('content-type', 'text/javascript').end(SCRIPT);
    else if (req.url === '/api/echo') req.pipe(res);
    else if (req.url === '/api/me') res.end(String(req.headers['x-forwarded-email']));
    else res.writeHead(404).end();
  });
  server.on('upgrade', (req, socket) => {
    received.set(req.url ?? '', req.headers);
    const accept = createHash('sha1').update(`${req.headers['sec-websocket-key']}${WEBSOCKET_GUID}`).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    const text = Buffer.from(`socket of ${String(req.headers['x-forwarded-email'])}`);
    socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: portOf(server),
    received,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port');
  return address.port;
}
