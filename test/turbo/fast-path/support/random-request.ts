/** Requests as clients send them, and what is left of them when they are damaged, in pieces as a network delivers them. */
import type { Random } from '../../../chaos/support/random.ts';
import { TOKEN, type Conversation } from './both-paths.ts';

const CHAT = '/v1/chat/completions';
const PATHS = [
  CHAT,
  CHAT,
  CHAT,
  CHAT,
  CHAT,
  '/v1/embeddings',
  '/v1/chat/completions?beta=true',
  '/v1/messages',
  '/rerank',
  '/v1/audio/transcriptions',
  '/v1/tokenize',
  '/v1/models',
  '/v1/chat%2Fcompletions',
  '/nothing',
] as const;
const POST = 'POST';
const METHODS = [POST, POST, POST, POST, POST, POST, POST, POST, POST, POST, POST, POST, 'GET', 'OPTIONS', 'post'] as const;
const BODIES = [
  '{"model":"primary","messages":[{"role":"user","content":"Hi"}]}',
  '{"model":"primary-model","messages":[]}',
  '{"messages":[]}',
  '{"seed":null,"model":"primary:think","messages":[]}',
  '{"model":"unknown"}',
  '{"model":"unknown","messages":[{"role":"user","content":"Hello there"}]}',
  '{"model":{}}',
  '{"model":',
  '[]',
  '',
  `{"model":"unknown","prompt":"${'x'.repeat(1500)}"}`,
  `{"model":"unknown","prompt":"${'x'.repeat(5000)}"}`,
] as const;
const HEADERS = [
  'Accept: */*',
  'User-Agent: OpenAI/Python 1.99.0',
  'Accept-Encoding: gzip, deflate',
  'Connection: keep-alive',
  'Connection: close',
  'connection: Keep-Alive, X-Two',
  'X-Request-Id: mine-1',
  'x-client-request-id: mine/2',
  'X-Two:2',
  'X-Two: 2',
  'Cookie: a=b',
  'x-api-key: svc_other',
  // The same header twice is read on both paths, unless it decides how the connection or the body is read.
  'authorization: Bearer svc_other',
  'content-type: text/plain',
  'X-Request-Id: mine-3',
  'Accept: text/event-stream',
  'Origin: https://chat.example.com',
  'Origin: https://elsewhere.example.com',
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Site: cross-site',
  'Content-Encoding: gzip',
  'Expect: 100-continue',
  'Upgrade: websocket',
  'Transfer-Encoding: chunked',
  'X-Long: ' + 'y'.repeat(600),
  'Content-Length: 5',
  'Host: elsewhere.example.com',
  'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00',
  'traceparent: 00-0af7651916cd43dd8448eb211c80319c',
  'tracestate: vendor=1',
  'Keep-Alive: timeout=5',
  'Date: Mon, 23 Nov 2026 07:00:00 GMT',
] as const;
const TYPES = [
  'application/json',
  'application/json',
  'application/json; charset=utf-8',
  'text/plain',
  'multipart/form-data; boundary=a',
] as const;
/** Bytes with a meaning in the grammar, and some without. */
const BYTES = [
  '\r',
  '\n',
  '\r\n',
  ' ',
  '\t',
  ':',
  '\0',
  '\x7f',
  '\xe9',
  ',',
  ';',
  '0',
  '9',
  '-',
  '+',
  '/',
  '?',
  '#',
  '%',
  '"',
  'a',
  'H',
  '\r\n ',
  '\r\n\r\n',
] as const;

/** Requests on the same connection. Many repeat the head of the one before, whole or damaged, for another body. */
export function randomConversation(random: Random): Conversation {
  let last = wellFormed(random);
  return Array.from({ length: 1 + random.integer(2) * random.integer(6) }, () => {
    last = random.integer(3) === 0 ? wellFormed(random) : repeated(last, random);
    let text = last;
    const damages = Math.max(0, random.integer(6) - 3);
    for (let index = 0; index < damages; index += 1) text = damaged(text, random);
    return inPieces(Buffer.from(text, 'latin1'), random);
  });
}

/** A turn of a conversation with the slot "spread", which has several replicas. */
export function randomTurn(random: Random): Conversation {
  const texts = Array.from({ length: 1 + random.integer(3) }, () => 'word '.repeat(1 + random.integer(200)));
  const messages = texts.map((content, index) => ({ role: random.pick(['user', 'system', 'assistant']), content: `${index} ${content}` }));
  const named = random.pick([{}, {}, {}, { user: `u${random.integer(9)}` }, { prompt_cache_key: `k${random.integer(9)}` }]);
  const body = JSON.stringify({ model: 'spread', messages: random.integer(9) === 0 ? [] : messages, ...named });
  const session = random.integer(4) === 0 ? `${random.pick(['X-Session-Id', 'x-session-id'])}: s${random.integer(9)}\r\n` : '';
  const head = `Host: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer ${TOKEN}\r\n${session}`;
  return [inPieces(Buffer.from(`POST ${CHAT} HTTP/1.1\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`, 'latin1'), random)];
}

function wellFormed(random: Random): string {
  const body = random.pick(BODIES);
  const lines = ['Host: localhost'];
  if (random.integer(20) > 0) lines.push(`Content-Type: ${random.pick(TYPES)}`);
  if (random.integer(8) > 0) lines.push(`Authorization: Bearer ${TOKEN}`);
  const extra = Math.max(0, random.integer(6) - 2);
  for (let index = 0; index < extra; index += 1) lines.splice(random.integer(lines.length + 1), 0, random.pick(HEADERS));
  if (random.integer(20) > 0) lines.push(`Content-Length: ${random.integer(20) === 0 ? random.integer(200) : body.length}`);
  return `${random.pick(METHODS)} ${random.pick(PATHS)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}

function repeated(text: string, random: Random): string {
  const body = random.pick(BODIES);
  const head = text.slice(0, text.indexOf('\r\n\r\n'));
  return `${head.replace(/(?<=\r\nContent-Length: )\d+$/, String(body.length))}\r\n\r\n${body}`;
}

/** Most damage is done to the head. */
function damaged(text: string, random: Random): string {
  const at = random.integer(random.integer(5) === 0 ? text.length : Math.max(1, text.indexOf('\r\n\r\n') + 4));
  switch (random.integer(7)) {
    case 0:
      return text.slice(0, at) + random.pick(BYTES) + text.slice(at);
    case 1:
      return text.slice(0, at) + random.pick(BYTES) + text.slice(at + 1);
    case 2:
      return text.slice(0, at) + text.slice(at + 1 + random.integer(4));
    case 3:
      return text.slice(0, at) + String.fromCodePoint(random.integer(256)) + text.slice(at + 1);
    case 4: {
      const end = text.indexOf('\r\n', at);
      return end === -1 ? text : text.slice(0, end) + random.pick([' ', '\t', '  ', '\r', '\0']) + text.slice(end);
    }
    case 5: {
      const lines = text.split('\r\n');
      const line = random.integer(lines.length);
      return lines.toSpliced(line, 0, lines[random.integer(lines.length)] ?? '').join('\r\n');
    }
    default:
      return text.slice(0, at);
  }
}

function inPieces(bytes: Buffer, random: Random): readonly Buffer[] {
  const cuts = Math.max(0, random.integer(6) - 3);
  const offsets = Array.from({ length: cuts }, () => random.integer(bytes.length)).toSorted((one, other) => one - other);
  return [0, ...offsets].map((from, index) => bytes.subarray(from, offsets[index] ?? bytes.length)).filter((piece) => piece.length > 0);
}
