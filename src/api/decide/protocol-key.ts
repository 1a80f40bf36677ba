/** Pages in a browser cannot set `Authorization` for a WebSocket, so OpenAI's client sends the key as the name of a subprotocol. Pure. */

const KEY_PREFIX = 'openai-insecure-api-key.';
const HEADER = 'sec-websocket-protocol';
/** What the server answers if the client offers it: never the key. */
export const PROTOCOL = 'realtime';

/** `rawHeaders` are names and values in turn. The key becomes a bearer token beside the ones that are there already: two different ones are refused. */
export function withProtocolKey(rawHeaders: readonly string[]): readonly string[] {
  const keys: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== HEADER) continue;
    for (const name of (rawHeaders[index + 1] ?? '').split(',')) {
      const protocol = name.trim();
      if (protocol.startsWith(KEY_PREFIX)) keys.push('Authorization', `Bearer ${protocol.slice(KEY_PREFIX.length)}`);
    }
  }
  return keys.length === 0 ? rawHeaders : [...rawHeaders, ...keys];
}
