/** The chunks of a body, each as it was received. The iterator of a stream joins those that wait, and copies each byte for that. */
import type { Readable } from 'node:stream';

/** So many chunks wait before the stream is paused. */
const AHEAD = 2;

/** Throws the error of the body after everything that was received before it. A caller that stops earlier must destroy the body. */
export async function* bodyChunks(body: Readable): AsyncGenerator<Buffer, void> {
  const waiting: Buffer[] = [];
  let end: { readonly error?: Error } | undefined;
  let wake = (): void => undefined;
  const take = (chunk: unknown): void => {
    if (Buffer.isBuffer(chunk)) waiting.push(chunk);
    if (waiting.length >= AHEAD) body.pause();
    wake();
  };
  const finish = (how: { readonly error?: Error }): void => {
    // A stream that has failed passes nothing on by itself, but still has what arrived while it was paused.
    body.off('data', take);
    take(body.read());
    end ??= how;
    wake();
  };
  body.on('error', (error: Error) => finish({ error }));
  body.once('end', () => finish({}));
  body.once('close', () => finish({}));
  body.on('data', take);
  for (;;) {
    const chunk = waiting.shift();
    if (chunk !== undefined) {
      if (body.isPaused()) body.resume();
      yield chunk;
    } else if (end === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    } else {
      if (end.error !== undefined) throw end.error;
      return;
    }
  }
}
