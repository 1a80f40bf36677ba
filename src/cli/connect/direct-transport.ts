/** To a service at an address. */
import { CliFailure } from '../output/exit-codes.ts';
import { ANSWER_MS, type Answered, type Asked, type Transport } from './transport.ts';
import { codeOf, messageOf, nameOf } from '../../platform/error-text.ts';

/** An answer comes from the service's memory and costs it nothing. */
const POLL_MS = 150;

export function createDirectTransport(server: string, token: string | undefined): Transport {
  const common = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return {
    service: `"${server}"`,
    hint: 'Check --server: something else may listen there',
    pollMs: POLL_MS,
    async send(asked) {
      try {
        const with_ = { ...asked, headers: { ...common, ...asked.headers } };
        return asked.stream === true ? await openStream(server, with_) : await exchange(server, with_);
      } catch (cause) {
        throw unreachable(server, cause);
      }
    },
  };
}

async function exchange(server: string, { method, path, headers, body, signal }: Asked): Promise<Answered> {
  const signals = [signal, AbortSignal.timeout(ANSWER_MS)];
  const response = await fetch(`${server}${path}`, {
    method,
    headers: { ...headers },
    body: body ?? null,
    signal: AbortSignal.any(signals.filter((each) => each !== undefined)),
    redirect: 'error',
  });
  const text = await response.text();
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    text: async () => text,
    body: bytesOf(text),
  };
}

/** `fetch` gives up on a body that is silent for five minutes. */
async function openStream(server: string, { path, headers, signal }: Asked): Promise<Answered> {
  const { request } = await import('undici');
  const options = { method: 'GET', headers: { ...headers }, bodyTimeout: 0, headersTimeout: ANSWER_MS, signal: signal ?? null } as const;
  const { statusCode, headers: got, body } = await request(`${server}${path}`, options);
  return {
    status: statusCode,
    header: (name) => got[name]?.toString(),
    text: async () => body.text(),
    body: (async function* () {
      try {
        for await (const chunk of body) if (chunk instanceof Uint8Array) yield chunk;
      } catch (cause) {
        throw unreachable(server, cause);
      }
    })(),
  };
}

export async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

function unreachable(server: string, cause: unknown): CliFailure {
  if (nameOf(cause) === 'AbortError') return new CliFailure('Interrupted', { cause });
  const why = nameOf(cause) === 'TimeoutError' ? 'no answer came in time' : reasonOf(cause);
  return new CliFailure(`Could not reach the service at "${server}": ${why}`, {
    cause,
    hint: 'Start it with "svcctl serve", or name its address with --server or SVCCTL_SERVER',
  });
}

function reasonOf(error: unknown): string {
  const inner: unknown = error instanceof Error ? (error.cause ?? error) : error;
  const code = codeOf(inner);
  if (code === 'ECONNREFUSED') return 'nothing listens there';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name is not known';
  if (code === 'ECONNRESET' || code === 'UND_ERR_SOCKET') return 'the connection was cut';
  return messageOf(inner);
}
