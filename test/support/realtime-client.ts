/** A client of `/v1/realtime` for tests: keeps the events that arrive, sends any text, and makes sound. */
import { once } from 'node:events';
import { WebSocket, type ClientOptions } from 'ws';

export interface RealtimeEvent {
  readonly type: string;
  readonly event_id: string;
  readonly item_id?: string;
  readonly previous_item_id?: string | null;
  readonly delta?: string;
  readonly transcript?: string;
  readonly audio_start_ms?: number;
  readonly audio_end_ms?: number;
  readonly usage?: { readonly type: string; readonly seconds: number };
  readonly error?: {
    readonly type: string;
    readonly code: string;
    readonly message: string;
    readonly param: string | null;
    readonly event_id: string | null;
  };
  readonly session?: { readonly type: string; readonly audio: { readonly input: Readonly<Record<string, unknown>> } };
}

export interface RealtimeClient {
  readonly ws: WebSocket;
  readonly events: readonly RealtimeEvent[];
  send(event: object | string): void;
  append(pcm: Buffer): void;
  /** Waits for the number of events of a type, and returns the last of them. */
  waitFor(type: string, count?: number): Promise<RealtimeEvent>;
  /** The next error. */
  errorOf(event: object | string): Promise<NonNullable<RealtimeEvent['error']>>;
  ofType(type: string): readonly RealtimeEvent[];
  close(): Promise<void>;
  /** The status and the reason. */
  closed(): Promise<readonly [number, string]>;
}

export const RATE = 24_000;
export const DELTA = 'conversation.item.input_audio_transcription.delta';
export const COMPLETED = 'conversation.item.input_audio_transcription.completed';
export const FAILED = 'conversation.item.input_audio_transcription.failed';

/** Rejects with the answer if the server does not switch the protocol. */
export async function connectRealtime(
  url: string,
  protocols: readonly string[] = [],
  options: ClientOptions = {},
): Promise<RealtimeClient> {
  const ws = new WebSocket(url.replace(/^http/, 'ws'), [...protocols], options);
  const events: RealtimeEvent[] = [];
  const waiting = new Set<() => void>();
  ws.on('message', (data: Buffer) => {
    const event: RealtimeEvent = JSON.parse(data.toString('utf8'));
    events.push(event);
    for (const wake of waiting) wake();
  });
  const closed = new Promise<readonly [number, string]>((resolve) => ws.on('close', (code, reason) => resolve([code, reason.toString()])));
  await new Promise<void>((resolve, reject) => {
    ws.on('open', resolve);
    ws.on('error', reject);
    ws.on('unexpected-response', (_request, response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () => reject(new Error(`${response.statusCode} ${Buffer.concat(pieces).toString('utf8')}`)));
    });
  });
  const ofType = (type: string): readonly RealtimeEvent[] => events.filter((event) => event.type === type);
  const send = (event: object | string): void => ws.send(typeof event === 'string' ? event : JSON.stringify(event));
  async function waitFor(type: string, count = 1): Promise<RealtimeEvent> {
    for (;;) {
      const found = ofType(type)[count - 1];
      if (found !== undefined) return found;
      const next = Promise.withResolvers<void>();
      waiting.add(next.resolve);
      await Promise.race([
        next.promise,
        closed.then(() => Promise.reject(new Error(`closed before ${type}: ${JSON.stringify(events.slice(-5))}`))),
      ]);
      waiting.delete(next.resolve);
    }
  }
  return {
    ws,
    events,
    send,
    append: (pcm) => send({ type: 'input_audio_buffer.append', audio: pcm.toString('base64') }),
    waitFor,
    async errorOf(event) {
      const before = ofType('error').length;
      send(event);
      const { error } = await waitFor('error', before + 1);
      if (error === undefined) throw new Error('The event has no error');
      return error;
    },
    ofType,
    async close() {
      if (ws.readyState === ws.CLOSED) return;
      ws.close();
      await once(ws, 'close');
    },
    closed: () => closed,
  };
}

/** A tone that is as loud as a voice, as 16-bit samples. */
export function toneOf(seconds: number, rate = RATE): Buffer {
  const pcm = Buffer.alloc(Math.round(seconds * rate) * 2);
  for (let at = 0; at < pcm.length / 2; at += 1) pcm.writeInt16LE(Math.round(9000 * Math.sin(at * 0.17)), at * 2);
  return pcm;
}

export function silenceOf(seconds: number, rate = RATE): Buffer {
  return Buffer.alloc(Math.round(seconds * rate) * 2);
}
