/** The WebSockets of the stand-in for ComfyUI: events in texts, previews in binary messages, to the client that a job belongs to, and the length of the queue to everyone. */
import type { Server } from 'node:http';
import { WebSocketServer, type WebSocket } from 'ws';
import { pngOf } from './png.ts';

/** What tests make of them: nobody gets one, nothing is said, they break at the first step, or what comes is not what ComfyUI says. */
export type SocketBehaviour = 'normal' | 'refused' | 'silent' | 'broken' | 'garbage';

/** The kind of the event, and the format of the image: both JPEG. */
const PREVIEW_HEAD = Buffer.from('0000000100000001', 'hex');

export function createComfySockets(server: Server, behaviour: () => SocketBehaviour, remaining: () => number) {
  const sockets = new Map<string, WebSocket>();
  const acceptor = new WebSocketServer({ noServer: true });

  function send(socket: WebSocket | undefined, message: object | Buffer): void {
    if (behaviour() === 'silent') return;
    if (behaviour() === 'garbage') {
      for (const text of ['', '{', '[]', '{"type":"executing"}', '{"type":"progress","data":{"prompt_id":7,"value":-1,"max":0}}'])
        socket?.send(text);
      socket?.send(Buffer.from('00000001', 'hex'));
      socket?.send(Buffer.concat([PREVIEW_HEAD, Buffer.from('<html>')]));
    } else socket?.send(Buffer.isBuffer(message) ? message : JSON.stringify(message));
  }

  const status = () => ({ status: { exec_info: { queue_remaining: remaining() } } });

  server.on('upgrade', (request, stream, head) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://comfy');
    if (pathname !== '/ws' || behaviour() === 'refused') {
      stream.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    acceptor.handleUpgrade(request, stream, head, (socket) => {
      const sid = searchParams.get('clientId') ?? crypto.randomUUID();
      sockets.set(sid, socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.get(sid) === socket && sockets.delete(sid));
      send(socket, { type: 'status', data: { ...status(), sid } });
    });
  });

  return {
    /** Number of open ones. */
    open: () => sockets.size,
    tell(clientId: string, type: string, data: object): void {
      if (type === 'progress' && behaviour() === 'broken') sockets.get(clientId)?.terminate();
      else send(sockets.get(clientId), { type, data });
    },
    /** `step`: of which it is the preview. */
    preview(clientId: string, step: number): void {
      const jpeg = Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), pngOf(64, 64, step), Buffer.from('ffd9', 'hex')]);
      send(sockets.get(clientId), Buffer.concat([PREVIEW_HEAD, jpeg]));
    },
    tellStatus(): void {
      for (const socket of sockets.values()) send(socket, { type: 'status', data: status() });
    },
    close(): void {
      for (const socket of sockets.values()) socket.terminate();
      acceptor.close();
    },
  };
}
