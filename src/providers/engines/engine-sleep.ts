/** What a declared engine's server does besides its work: it sleeps and wakes, and counts requests in its metrics. */
import { isTable } from '../../schema/words/key-case.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import type { EngineDefinition } from '../../schema/slot/engine-document.ts';
import type { RequestCount, ServerAbilities } from '../provider-servers.ts';
import type { Endpoint, ProbeIo, ProbeResponse } from '../provider.ts';
import { asleepBytes, canSleep } from './decide/engine-command.ts';

const STATE_TIMEOUT_MS = 3000;
/** Histograms of many models. */
const MOST_METRICS_BYTES = 4 * 2 ** 20;

type Sleep = NonNullable<EngineDefinition['sleep']>;
type Call = Pick<Parameters<ProbeIo['request']>[1], 'timeoutMs' | 'signal'>;

export function engineAbilities(engine: EngineDefinition): ServerAbilities {
  const { sleep, drain } = engine;
  return {
    ...(drain === undefined ? {} : { countRequests: countRequests(drain) }),
    ...(sleep === undefined ? {} : { sleep: serverSleep(engine, sleep) }),
  };
}

function serverSleep(engine: EngineDefinition, sleep: Sleep): NonNullable<ServerAbilities['sleep']> {
  const { memory } = sleep;
  return {
    appliesTo: (spec) => canSleep(engine, spec),
    ...(memory === undefined ? {} : { hostBytes: (spec, sizeBytes) => asleepBytes(memory, spec, sizeBytes) }),
    async enter(endpoint, io, timeoutMs, signal) {
      const problem = await call(sleep.enter, endpoint, io, { timeoutMs, signal });
      if (problem !== undefined) return problem;
      return (await isAsleep(sleep, endpoint, io, signal))
        ? undefined
        : `"${sleep.enter}" succeeded, and "${sleep.state}" says that it does not sleep`;
    },
    leave: async (endpoint, io, timeoutMs, signal) => await call(sleep.leave, endpoint, io, { timeoutMs, signal }),
  };
}

/** False where the answer makes no sense, so that the server is probed like any other. */
export async function isAsleep({ state }: Sleep, endpoint: Endpoint, io: ProbeIo, signal: AbortSignal): Promise<boolean> {
  const { status, body } = await send(state, endpoint, io, { timeoutMs: STATE_TIMEOUT_MS, signal });
  const answer = status === 200 ? parseJson(body) : undefined;
  return (isTable(answer) ? Object.values(answer).find((value) => typeof value === 'boolean') : answer) === true;
}

async function call(text: string, endpoint: Endpoint, io: ProbeIo, how: Call): Promise<string | undefined> {
  const { status, error } = await send(text, endpoint, io, how);
  if (status >= 200 && status < 300) return undefined;
  return status === 0 ? `"${text}" got no answer: ${error ?? 'the connection ended'}` : `"${text}" was answered with status ${status}`;
}

async function send(text: string, endpoint: Endpoint, io: ProbeIo, how: Call): Promise<ProbeResponse> {
  const [method, path = '/'] = text.split(' ');
  return await io.request(endpoint, { method: method === 'POST' ? 'POST' : 'GET', path, ...how });
}

function countRequests({ inFlightMetric: name, path }: NonNullable<EngineDefinition['drain']>) {
  return async (endpoint: Endpoint, io: ProbeIo, signal: AbortSignal): Promise<RequestCount> => {
    const how = { timeoutMs: STATE_TIMEOUT_MS, mostBytes: MOST_METRICS_BYTES, signal };
    const { status, body, error } = await io.request(endpoint, { method: 'GET', path, ...how });
    if (status !== 200)
      return { problem: status === 0 ? `"GET ${path}" got no answer: ${error ?? ''}` : `"GET ${path}" was answered with status ${status}` };
    const count = sumMetric(body, name);
    return count === undefined ? { problem: `The answer of "GET ${path}" has no usable metric "${name}"` } : { count };
  };
}

/** The sum of a metric's samples in Prometheus text; undefined without samples that are counts. Pure. */
export function sumMetric(text: string, name: string): number | undefined {
  const values = text.split('\n').flatMap((line) => {
    const rest = line.startsWith(name) ? line.slice(name.length) : '';
    // Braces in quotes do not end the labels.
    const [, value] = /^(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?\s*$/.exec(rest) ?? [];
    return value === undefined ? [] : Number(value);
  });
  const sum = values.reduce((total, value) => total + value, 0);
  return values.length > 0 && values.every((value) => Number.isFinite(value) && value >= 0) ? sum : undefined;
}
