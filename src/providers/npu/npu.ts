/** Provider for AMD NPUs, on which FastFlowLM computes chats, embeddings and transcriptions in one process. */
import { z } from 'zod';
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import { rankBackends } from '../decide/rank-backends.ts';
import type { AskHealth, Endpoint, Health, ModelFormat, ProbeIo, ProbeResponse, Provider } from '../provider.ts';
import { unusable } from '../provider.ts';
import type { Translate } from '../translation.ts';
import { describeContents, parseModelList, EMBEDDER, LISTENER } from './decide/npu-models.ts';
import * as command from './decide/npu-command.ts';
import { parseValidation, whyNotReady } from './decide/npu-validation.ts';
import { translateChat, translateEmbedding, translateTranscription } from './translate-requests.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { ok } from '../../schema/words/failure.ts';
import { installedProgram, outputOf, rememberBackends } from '../host-program.ts';
import { errorIn, judgeAlive, judgeStatus, PASSING, PROBE_FORM_TYPE, probeForm, quoteError } from '../decide/judge-status.ts';

const openFlm: Provider['openProgram'] = ({ env }) => {
  const advice = 'install FastFlowLM and put it on the PATH of the service, or use containers';
  const { find, describe } = installedProgram(command.PROGRAM, env, advice);
  /** Only the program knows whether driver, firmware and XRT are as it needs them. */
  const validate = rememberBackends(async (program) => {
    const { stdout } = await outputOf(program, ['validate', '--json'], env);
    const validation = parseValidation(stdout);
    const name = `"${program} validate"`;
    if (validation === undefined || validation.ready) return validation && { name, backends: ['npu'] };
    return { name, backends: [], unavailable: { npu: whyNotReady(name, validation) } };
  });
  return {
    async resolve() {
      const found = await find();
      return found.ok ? ok([found.value]) : found;
    },
    describe,
    async reportBackends(devices) {
      const found = await find();
      return found.ok ? validate(found.value, devices) : undefined;
    },
  };
};

/** Probes ask for nothing that is computed: the server must not lose a client while it computes. */
/** Between two requests for the NPU, the threads that respond sleep for a third of a second. */
const STATUS_TIMEOUT_MS = 10_000;
/** The first request may move a model into the memory of the NPU. */
const FIRST_TIMEOUT_MS = 60_000;

const READY_PATH = '/api/npu/status';

const Status = z.object({ npu_available: z.boolean(), active_requests: z.number() });
/** A thinking model may have nothing else to say in one token. */
const Message = z.object({ content: z.string().nullish(), reasoning_content: z.string().nullish() });
const Embedding = z.object({ data: z.tuple([z.object({ embedding: z.array(z.number()).min(1) })], z.unknown()) });
const SHAPES: Readonly<Partial<Record<Capability, z.ZodType>>> = {
  chat: z.object({ choices: z.array(z.object({ message: Message })).min(1) }),
  embedding: Embedding,
  transcription: z.object({ text: z.string() }),
};

type Alive = Health | { readonly kind: 'busy' };

const askHealth: AskHealth = async (endpoint, io, _slot, signal) => {
  const alive = await askStatus(endpoint, io, signal);
  return alive.kind === 'busy' ? PASSING : alive;
};

const askReadiness: AskHealth = async (endpoint, io, { spec, model }, signal) => {
  const alive = await askStatus(endpoint, io, signal);
  // Asked again later: a waiting request could be given up before its turn, which can crash the server.
  if (alive.kind === 'busy') return { kind: 'loading', message: 'The NPU still computes an earlier request' };
  if (alive.kind !== 'passing') return alive;
  for (const capability of command.capabilitiesOf(spec, model)) {
    const request = { method: 'POST', timeoutMs: FIRST_TIMEOUT_MS, signal, ...firstRequest(capability, model.id) } as const;
    const verdict = judgeFirst(capability, await io.request(endpoint, request));
    if (verdict.kind !== 'passing') return verdict;
  }
  return PASSING;
};

async function askStatus(endpoint: Endpoint, io: ProbeIo, signal: AbortSignal): Promise<Alive> {
  const response = await io.request(endpoint, { method: 'GET', path: READY_PATH, timeoutMs: STATUS_TIMEOUT_MS, signal });
  const failed = judgeAlive(response);
  if (failed !== undefined) return failed;
  const known = Status.safeParse(parseJson(response.body)).data;
  if (known === undefined) return { kind: 'failing', message: 'The status of the server does not say whether the NPU is available' };
  return known.npu_available && known.active_requests <= 0 ? PASSING : { kind: 'busy' };
}

function firstRequest(
  capability: Capability,
  model: string,
): { readonly path: string; readonly body: string | Uint8Array; readonly contentType?: string } {
  if (capability === 'transcription') return { path: '/v1/audio/transcriptions', body: probeForm(LISTENER), contentType: PROBE_FORM_TYPE };
  if (capability === 'embedding') return { path: '/v1/embeddings', body: JSON.stringify({ model: EMBEDDER, input: 'Hi' }) };
  return { path: '/v1/chat/completions', body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 }) };
}

function judgeFirst(capability: Capability, response: ProbeResponse): Health {
  const { status, body } = response;
  const value = parseJson(body);
  if (status === 0 || status === 503) return judgeStatus(response) ?? PASSING;
  if (status !== 200 || errorIn(body) !== undefined)
    return { kind: 'failing', message: `The server cannot serve "${capability}": status ${status}: ${quoteError(body)}` };
  if (SHAPES[capability]?.safeParse(value).success !== true)
    return { kind: 'failing', message: `The server does not serve "${capability}", although it was started for it` };
  const vector = Embedding.safeParse(value).data?.data[0].embedding;
  if (capability !== 'embedding' || vector?.some((number) => number !== 0) === true) return PASSING;
  return { kind: 'nonsense', message: 'The model answers nonsense: all values of the embedding of a text are 0' };
}

const npuFormat: ModelFormat = {
  kind: 'npu',
  recognize: () => undefined,
  contentsFrom: (stated) => stated,
  read: async ({ id }) => unusable(`The NPU cannot run "${id}", nor any other file of the store; choose a model that FastFlowLM lists`),
  describe: describeContents,
};

/** Chats contain images. */
const MAX_JSON_BYTES = 64 * 2 ** 20;

const planRequest: Provider['infer'] = ({ path, capability }, capabilities, slot) => {
  const model = slot?.model?.id ?? slot?.spec.model.default;
  const run = model === undefined || !capabilities.includes(capability) ? undefined : translationOf(path, capability, model);
  if (run !== undefined) return { kind: 'translate', run, maxJsonBytes: MAX_JSON_BYTES };
  const message = `The model of this slot does not serve "${path}", or the weights for it are missing; send the request to another slot`;
  return { kind: 'refuse', message };
};

function translationOf(path: string, capability: Capability, model: string): Translate | undefined {
  if (path === '/v1/chat/completions' && capability === 'chat') return translateChat(model);
  if (path === '/v1/embeddings' && capability === 'embedding') return translateEmbedding;
  return path === '/v1/audio/transcriptions' && capability === 'transcription' ? translateTranscription : undefined;
}

export const npu: Provider = {
  kind: 'npu',
  program: command.PROGRAM,
  toolbox: { folder: 'npu', backends: ['npu'] },
  containerPort: 8086,
  readyPath: READY_PATH,
  safeFlags: command.SAFE_FLAGS,
  models: npuFormat,
  ownModels: { listArguments: command.LIST_ARGUMENTS, parse: parseModelList },
  openProgram: openFlm,
  rankBackends: (hardware) => rankBackends('npu', hardware),
  devices: command.devicesOf,
  buildEnv: command.serverEnvironment,
  startCmd: command.serverCommand,
  estimateMemory: (_name, spec, model) => command.serverMemory(spec, model),
  capabilities: (_name, spec, model) => command.capabilitiesOf(spec, model),
  abilities(_name, _spec, { contents }) {
    const known = describeContents(contents).abilities;
    return known === undefined ? {} : { thinking: known.includes('thinking'), vision: known.includes('vision'), audio: false };
  },
  health: askHealth,
  readiness: askReadiness,
  infer: planRequest,
};
