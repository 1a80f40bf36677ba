/** Asks llama-server for its health. */
import type { Endpoint, Health, ProbeIo, SlotContext } from '../provider.ts';
import {
  checksFor,
  deriveHealth,
  deriveReadiness,
  PROBES,
  READINESS_CHECKS,
  worstOf,
  type ProbeRequest,
  type Check,
} from './decide/derive-health.ts';
import { ggufModel } from './decide/gguf-model.ts';
import { roleOf } from './decide/model-role.ts';

/** The first request may compile shaders, which takes many seconds on a slow GPU. */
const PROBE_TIMEOUT_MS = 30_000;
/** `/health` is answered by threads that wait for nothing, within milliseconds. */
const ALIVE_TIMEOUT_MS = 3_000;

type ProbedSlot = Pick<SlotContext, 'name' | 'spec' | 'model'>;

/** A server that is busy with long requests answers the probe late, but `/health` immediately. */
export async function askHealth(endpoint: Endpoint, io: ProbeIo, slot: ProbedSlot, signal: AbortSignal): Promise<Health> {
  const { start } = roleOf(slot.name, slot.spec, ggufModel(slot.model));
  const probe = PROBE_OF[start];
  return (
    (await askAlive(endpoint, io, signal)) ??
    judge(await post(endpoint, io, PROBES[probe], signal), (answer) => deriveHealth(probe, answer))
  );
}

/**
 * Sends one request for each thing that the slot serves, all at the same time. Only the one that each later probe sends as well has to be answered: a causal reranker may come
 * without what generates text, and ranks all the same. Of the others, only nonsense counts.
 */
export async function askReadiness(endpoint: Endpoint, io: ProbeIo, slot: ProbedSlot, signal: AbortSignal): Promise<Health> {
  const notAlive = await askAlive(endpoint, io, signal);
  if (notAlive !== undefined) return notAlive;
  const { start, capabilities } = roleOf(slot.name, slot.spec, ggufModel(slot.model));
  const own = PROBE_OF[start];
  const check = async (each: Check): Promise<Health> => {
    const health = await askOne(each);
    return each !== own && health.kind === 'failing' ? { kind: 'passing' } : health;
  };
  const askOne = async (each: Check): Promise<Health> => {
    const answer = await post(endpoint, io, READINESS_CHECKS[each], signal);
    // A server that does not know a parameter of the check, such as the embedded engine, is asked without it.
    if (answer.status >= 400 && answer.status !== 503) {
      return judge(await post(endpoint, io, PROBES[each], signal), (plain) => deriveHealth(each, plain));
    }
    return judge(answer, (response) => deriveReadiness(each, response, ggufModel(slot.model), slot.spec.backend));
  };
  return worstOf(await Promise.all(checksFor(capabilities, own).map(check)));
}

const PROBE_OF = { generate: 'completion', embed: 'embedding', rerank: 'rerank' } as const;

type Answer = Awaited<ReturnType<ProbeIo['request']>>;

async function askAlive(endpoint: Endpoint, io: ProbeIo, signal: AbortSignal): Promise<Health | undefined> {
  const alive = await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: ALIVE_TIMEOUT_MS, signal });
  return alive.status === 200 ? undefined : deriveHealth('completion', alive);
}

function post(endpoint: Endpoint, io: ProbeIo, request: ProbeRequest, signal: AbortSignal): Promise<Answer> {
  return io.request(endpoint, { method: 'POST', ...request, timeoutMs: PROBE_TIMEOUT_MS, signal });
}

function judge(answer: Answer, derive: (answer: Answer) => Health): Health {
  if (answer.status !== 0) return derive(answer);
  const why = answer.error ?? 'no response';
  return { kind: 'loading', message: `The server is running, but the model has not answered a health probe: ${why}` };
}
