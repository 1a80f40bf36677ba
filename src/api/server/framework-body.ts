/** Reads bodies of the framework's routes into memory, and parses small forms. The gateway reads those of inference. */
import { BODIES_FILL_MEMORY } from '../../gateway/body/kept-body.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BodyProblem } from '../../gateway/body/body-scan.ts';
import { boundaryOf } from '../../gateway/body/decide/multipart-head.ts';
import { MultipartScanner } from '../../gateway/body/multipart-scanner.ts';
import { slowBody } from '../../gateway/route/decide/request-limits.ts';
import type { BufferBudget } from '../../gateway/traffic/traffic.ts';
import { ApiError } from './answer.ts';

const CHECK_MS = 1000;

/**
 * Rejects with an `ApiError` for a body that is too large, too slow or cut, or if the budget has no room. The body
 * counts against the budget until the response is closed.
 */
export async function readWhole(
  { req, res }: { readonly req: IncomingMessage; readonly res: ServerResponse },
  limitBytes: number,
  budget: BufferBudget,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const startedAt = performance.now();
  const pieces: Buffer[] = [];
  let lastAt = startedAt;
  let bytes = 0;

  function end(error?: ApiError): void {
    clearInterval(checks);
    req.off('data', take);
    if (error === undefined) resolve(Buffer.concat(pieces));
    else reject(error);
  }
  function take(piece: Buffer): void {
    lastAt = performance.now();
    if (bytes + piece.length > limitBytes) end(bodyOver(limitBytes));
    else if (budget.reserve(piece.length)) {
      bytes += piece.length;
      pieces.push(piece);
    } else end(new ApiError('server.overloaded', BODIES_FILL_MEMORY));
  }
  const checks = setInterval(() => {
    const slow = slowBody({ now: performance.now(), startedAt, lastAt, bytes });
    if (slow !== undefined) end(new ApiError('request.timeout', slow));
  }, CHECK_MS);
  req.on('data', take);
  req.on('end', () => end());
  req.on('close', () => end(new ApiError('request.invalid', 'The body is cut: send all of it')));
  res.once('close', () => budget.release(bytes));
  if (req.headers.expect !== undefined && req.httpVersionMinor === 1) res.writeContinue();
  return await promise;
}

export function bodyOver(limitBytes: number): ApiError {
  return new ApiError('request.too_large', `The body has more than ${limitBytes} bytes: send a smaller one`);
}

/** Field → its text, or the bytes of a file. */
export type Form = Readonly<Record<string, string | Buffer>>;

type ReadForm = { readonly ok: true; readonly fields: Form } | ({ readonly ok: false } & BodyProblem);

/** `contentType` names the boundary. Fields must not repeat. The bytes of files are views of `body`. */
export function readForm(body: Buffer, contentType: string): ReadForm {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) return wrong('The header "Content-Type" names no boundary of the form', 'Content-Type');
  const scanner = new MultipartScanner(boundary);
  scanner.feed(body);
  if (scanner.status !== 'done') return wrong(scanner.problem?.message ?? scanner.unfinished, scanner.problem?.param ?? null);
  const fields = new Map<string, string | Buffer>();
  for (const { name, fileName, from, bytes } of scanner.parts) {
    const shown = name.slice(0, 100);
    if (fields.has(name)) return wrong(`The field "${shown}" is repeated: send it once`, shown);
    const content = body.subarray(from, from + bytes);
    fields.set(name, fileName === undefined ? content.toString('utf8') : content);
  }
  return { ok: true, fields: Object.fromEntries(fields) };
}

const wrong = (message: string, param: string | null): ReadForm => ({ ok: false, message, param });
