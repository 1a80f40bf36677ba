/**
 * A small server with the API of the Hugging Face Hub, as a pod: the repository "test/tiny" is public, "test/gated" needs the token, and from
 * "test/slow" only the first answer is quick (the gateway reads the header), and a file takes 15 s after that. The model is the file
 * /model/model.gguf, from byte 0 to the end or in ranges. `GET /log` returns the requests so far, without the tokens.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const FILE = 'tiny-Q4_K_M.gguf';
const COMMIT = 'c'.repeat(40);
const content = readFileSync('/model/model.gguf');
const sha256 = createHash('sha256').update(content).digest('hex');
const log = [];
const SLOW_PIECES = 10;
const SLOW_PIECE_MS = 1500;

const server = createServer((request, response) => {
  const [path = ''] = (request.url ?? '').split('?');
  if (path === '/log') return send(response, 200, log);
  const isAuthorized = request.headers.authorization === `Bearer ${process.env.TOKEN}`;
  log.push({ path, range: request.headers.range, from: request.socket.remoteAddress, isAuthorized });
  const repo = /test\/(?:tiny|gated|slow)/.exec(path)?.[0];
  if (repo === undefined) return refuse(response, 401, 'RepoNotFound');
  const isGated = repo === 'test/gated';
  if (path.endsWith('/revision/main'))
    return send(response, 200, { sha: COMMIT, gated: isGated ? 'auto' : false, tags: [], cardData: { license: 'apache-2.0' } });
  if (path.endsWith(`/tree/${COMMIT}`))
    return send(response, 200, [{ type: 'file', path: FILE, size: content.length, lfs: { oid: sha256, size: content.length } }]);
  if (path !== `/${repo}/resolve/${COMMIT}/${FILE}`) return refuse(response, 404, 'EntryNotFound');
  if (isGated && !isAuthorized) return refuse(response, 403, 'GatedRepo');
  const [, first = '0', last = ''] = /^bytes=([0-9]+)-([0-9]*)$/.exec(request.headers.range ?? '') ?? [];
  const end = last === '' ? content.length : Math.min(Number(last) + 1, content.length);
  const range = request.headers.range === undefined ? {} : { 'content-range': `bytes ${first}-${end - 1}/${content.length}` };
  const head = { ...range, 'content-length': end - Number(first), 'x-linked-etag': `"${sha256}"`, 'accept-ranges': 'bytes' };
  response.writeHead(request.headers.range === undefined ? 200 : 206, head);
  const body = content.subarray(Number(first), end);
  const isSlow = repo === 'test/slow' && log.filter((each) => each.path === path).length > 1;
  if (isSlow) sendSlowly(response, body);
  else response.end(body);
});

function sendSlowly(response, body, size = Math.ceil(body.length / SLOW_PIECES)) {
  response.write(body.subarray(0, size));
  if (body.length <= size) return response.end();
  setTimeout(() => sendSlowly(response, body.subarray(size), size), SLOW_PIECE_MS);
}

function send(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function refuse(response, status, code) {
  response.writeHead(status, { 'x-error-code': code }).end();
}

process.on('SIGTERM', () => process.exit(0));
server.listen(8080);
