/** Probes of declared engines: one cheap request, then one for each capability, in OpenAI's dialect. */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { ENGINE_PATHS, type EngineDefinition } from '../../schema/slot/engine-document.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import { judgeAlive, judgeStatus, PASSING, PROBE_FORM_TYPE, probeForm } from '../decide/judge-status.ts';
import { deriveHealth, worstOf } from '../gguf/decide/derive-health.ts';
import { judgeSpeech, judgeTranscription } from '../speech/speech-server.ts';
import type { AskHealth, Health, ProbeResponse } from '../provider.ts';
import { requestedName, serverPath } from './decide/engine-command.ts';
import { isAsleep } from './engine-sleep.ts';

const ALIVE_TIMEOUT_MS = 3000;
/** The first request may compile kernels. */
const PROBE_TIMEOUT_MS = 30_000;

interface CapabilityProbe {
  body(model: string): string | Uint8Array;
  readonly contentType?: string;
  judge(response: ProbeResponse): Health;
}

const Chat = z.object({ choices: z.tuple([z.object({ message: z.looseObject({ role: z.string() }) })], z.unknown()) });
const json = (body: object) => (model: string) => JSON.stringify({ model, ...body });

function judgeChat({ body }: ProbeResponse): Health {
  if (Chat.safeParse(parseJson(body)).success) return PASSING;
  return { kind: 'failing', message: 'The response to a health probe does not contain a message in "choices"' };
}

/** No probe: the same model transcribes, and drawing an image takes too long. */
const PROBES: Readonly<Partial<Record<Capability, CapabilityProbe>>> = {
  chat: { body: json({ messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 }), judge: judgeChat },
  completion: { body: json({ prompt: 'Hi', max_tokens: 1 }), judge: (response) => deriveHealth('completion', response) },
  embedding: { body: json({ input: 'Hi' }), judge: (response) => deriveHealth('embedding', response) },
  rerank: { body: json({ query: 'Hi', documents: ['Hello'] }), judge: (response) => deriveHealth('rerank', response) },
  transcription: { body: probeForm, contentType: PROBE_FORM_TYPE, judge: judgeTranscription },
  speech: { body: json({ input: 'Hi', response_format: 'wav' }), judge: judgeSpeech },
};

/** The cheapest ones first. */
const CHEAPEST: readonly Capability[] = ['embedding', 'rerank', 'completion', 'chat', 'transcription', 'speech'];

/** Answers of a server that serves the model, for a capability that the model lacks. */
const NOT_SERVED: ReadonlySet<number> = new Set([400, 404, 405, 422, 501]);

type Asked = Parameters<AskHealth>;
type Answer = { readonly health: Health; readonly isServed: boolean };

export function engineHealth(engine: EngineDefinition): { readonly health: AskHealth; readonly readiness: AskHealth } {
  const probed = CHEAPEST.filter((capability) => engine.serves.includes(capability));
  return {
    async health(...asked) {
      const failed = (await askAlive(engine.health, asked)) ?? (await askSleep(engine, asked));
      if (failed !== undefined || engine.health.contains !== undefined) return failed ?? PASSING;
      let last: Health = PASSING;
      for (const capability of probed) {
        const { health, isServed } = await askModel(engine, capability, asked);
        if (isServed) return health;
        last = health;
      }
      return last;
    },
    /** An engine serves more than each of its models: at least one capability must pass, and none may be broken. */
    async readiness(...asked) {
      const failed = (await askAlive(engine.health, asked)) ?? (await askSleep(engine, asked));
      if (failed !== undefined) return failed;
      const answers = await Promise.all(probed.map(async (capability) => await askModel(engine, capability, asked)));
      const served = answers.filter(({ isServed }) => isServed);
      return worstOf((served.length === 0 ? answers : served).map(({ health }) => health));
    },
  };
}

async function askAlive({ path, contains }: EngineDefinition['health'], [endpoint, io, , signal]: Asked): Promise<Health | undefined> {
  const response = await io.request(endpoint, { method: 'GET', path, timeoutMs: ALIVE_TIMEOUT_MS, signal });
  const failed = judgeAlive(response);
  if (failed !== undefined) return failed;
  const failing = (message: string): Health => ({ kind: 'failing', message });
  if (/^\s*<(?:!doctype\s+html|html)\b/i.test(response.body))
    return failing(`The path "${path}" answers with a web page: set "health.path" of the engine to a path that reports its health`);
  if (contains === undefined || response.body.includes(contains)) return undefined;
  return failing(`The answer of "${path}" does not contain "${contains}", as "health.contains" of the engine says`);
}

async function askSleep({ sleep }: EngineDefinition, [endpoint, io, , signal]: Asked): Promise<Health | undefined> {
  if (sleep === undefined || !(await isAsleep(sleep, endpoint, io, signal))) return undefined;
  return { kind: 'asleep', message: 'The server sleeps' };
}

async function askModel(engine: EngineDefinition, capability: Capability, [endpoint, io, { spec }, signal]: Asked): Promise<Answer> {
  const probe = PROBES[capability];
  const path = serverPath(engine, ENGINE_PATHS[capability][0]);
  if (probe === undefined || path === undefined) return { health: PASSING, isServed: true };
  const { contentType } = probe;
  const body = probe.body(requestedName(engine, spec) ?? spec.model.default);
  const options = { body, ...(contentType === undefined ? {} : { contentType }), timeoutMs: PROBE_TIMEOUT_MS, signal };
  const response = await io.request(endpoint, { method: 'POST', path, ...options });
  return { health: judgeStatus(response) ?? probe.judge(response), isServed: !NOT_SERVED.has(response.status) };
}
