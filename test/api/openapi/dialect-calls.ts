/** Calls of Ollama's API and of what model servers have besides OpenAI's. */
import { OLLAMA } from '../../../src/gateway/route/decide/dialects.ts';
import { dialectOf, INFERENCE_PATHS, NATIVE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import type { DocumentedRoute } from '../../../src/api/server/define-route.ts';

export const CALLED_PATHS = [...INFERENCE_PATHS, ...NATIVE_PATHS];

/** The codes that each route has to be seen with. Raw routes share those of the gateway, and Ollama's errors have none. */
export const codesOf = (route: DocumentedRoute) => (route.raw === undefined && dialectOf(route.path) !== OLLAMA ? route.errors : []);

const CHAT = { messages: [{ role: 'user', content: 'Hi' }] };

/** The errors of Ollama have no codes. */
const OLLAMA_CALLS = [
  ...['tags', 'version', 'ps'].map((name) => ({ operation: `GET /ollama/api/${name}`, expect: 200 })),
  ...Object.entries({ chat: CHAT, generate: { prompt: 'Hi' }, embed: { input: 'Hi' }, show: {} }).flatMap(([name, fields]) => {
    const operation = `POST /ollama/api/${name}`;
    const body = { model: name === 'embed' ? 'embed' : 'primary', ...fields };
    return [
      { operation, expect: 200, body: { ...body, stream: false } },
      { operation, expect: 200, body },
      { operation, expect: 404, body: { ...body, model: 'none' } },
      { operation, expect: 400, body: { ...body, model: 1 } },
      { operation, expect: 415, body: 'x', headers: { 'content-type': 'text/plain' } },
    ];
  }),
  { operation: 'POST /ollama/api/chat', expect: 501, body: { ...CHAT, model: 'primary', options: { temperature: 501 } } },
];

const UPSTREAM_CALLS = [
  { operation: 'GET /props', expect: 200, path: '/props?model=primary' },
  { operation: 'GET /props', expect: 'model.not_found', path: '/props?model=none' },
  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].flatMap((method) => {
    const operation = `${method} /upstream/{slot}/{rest}`;
    return [
      { operation, expect: 200, path: '/upstream/primary/slots' },
      { operation, expect: 'model.not_found', path: '/upstream/none/slots' },
      { operation, expect: 'request.invalid', path: '/upstream/primary//slots' },
    ];
  }),
];

export const dialectCalls = (prepare: () => void) => [...OLLAMA_CALLS, ...UPSTREAM_CALLS].map((call) => ({ ...call, prepare }));
