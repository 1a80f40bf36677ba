/** The request id in answers, logs and the upstream's log: the client's own if it is well-formed, else a new one. */
import { randomFillSync } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseRequestHead } from '../gateway/upstream/decide/request-head.ts';

const ID_BYTES = 16;
/** Random bytes for many ids, since asking for them each time costs more than the rest of an id. */
const POOL_BYTES = 256 * ID_BYTES;

export function requestIdOf(req: IncomingMessage): string {
  return parseRequestHead(req.rawHeaders).requestId ?? newRequestId();
}

export const newRequestId = createRequestIds();

function createRequestIds(): () => string {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  return () => {
    if (used === POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    used += ID_BYTES;
    return `req_${pool.toString('hex', used - ID_BYTES, used)}`;
  };
}
