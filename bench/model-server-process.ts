/** A server with one large file, for the measurement of downloads: `node model-server-process.ts MIB BYTES_PER_SECOND` (0: no limit). Prints its port and the hash. */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { virtualFile } from '../test/support/hub/virtual-file.ts';

const [mib = '', limit = ''] = process.argv.slice(2);
const file = virtualFile(Number(mib) * 2 ** 20);
const bytesPerSecond = Number(limit);
const CHUNK = 2 ** 20;
const content = file.read(0, file.sizeBytes);
/** When everything that was sent so far is within the limit, which all connections share. */
let paidAt = 0;

const server = createServer((request, response) => {
  const [, first, last] = /^bytes=([0-9]+)-([0-9]*)$/.exec(request.headers.range ?? '') ?? [];
  const from = Number(first ?? 0);
  const end = last === undefined || last === '' ? file.sizeBytes : Number(last) + 1;
  const range = first === undefined ? {} : { 'content-range': `bytes ${from}-${end - 1}/${file.sizeBytes}` };
  response.writeHead(first === undefined ? 200 : 206, { 'content-length': end - from, 'accept-ranges': 'bytes', ...range });
  const send = async (): Promise<void> => {
    for (let at = from; at < end && !response.destroyed; at += CHUNK) {
      const length = Math.min(CHUNK, end - at);
      if (bytesPerSecond > 0) {
        const now = performance.now();
        paidAt = Math.max(paidAt, now) + (1000 * length) / bytesPerSecond;
        await sleep(paidAt - now);
      }
      if (!response.write(content.subarray(at, at + length))) await new Promise((resolve) => response.once('drain', resolve));
    }
    response.end();
  };
  void send();
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : 0} ${file.sha256}\n`);
});
