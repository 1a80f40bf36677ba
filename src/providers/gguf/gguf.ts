/** Provider for GGUF models, which llama-server of llama.cpp serves. */
import type { ClientMistake, Provider, SlotContext } from '../provider.ts';
import { promptCache } from './prompt-cache.ts';
import { askHealth, askReadiness, openLlamaServer } from './gguf-server.ts';
import { ggufModel } from './decide/gguf-model.ts';
import { chatAbilities, objectionTo, roleOf } from './decide/model-role.ts';
import { ggufKeys, objectionToKeys } from './decide/key-arguments.ts';
import { llamaHelp } from './decide/llama-options.ts';
import { PROGRAM, serverCommand, serverEnvironment, type GgufSlot } from './decide/gguf-command.ts';
import { serverMemory, serverSplits } from './decide/server-layout.ts';
import { devicesOf, rankBackends } from '../decide/rank-backends.ts';
import { ggufFormat } from './gguf-format.ts';
import { translateResponses } from './translate-responses.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';

const SAME_PATHS: ReadonlySet<string> = new Set(
  ['chat/completions', 'completions', 'embeddings', 'messages', 'messages/count_tokens'].map((name) => `/v1/${name}`),
);

const UNSUPPORTED: Readonly<Partial<Record<Capability, string>>> = {
  chat: 'The model of this slot only makes embeddings or scores; send the request to a slot with a chat model',
  completion: 'The model of this slot only makes embeddings or scores; send the request to a slot with a text model',
  embedding:
    'The model of this slot does not make embeddings; send the request to the slot "embed", or set an embedding model in this slot',
  rerank: 'The model of this slot has no classifier head; set a reranker model',
};

/**
 * Errors with which llama-server answers mistakes of clients, with status 500 or 501. Seen with b11669 (0.7.0 of
 * Debian) on 2026-11-24.
 */
const MISTAKES: readonly ClientMistake[] = [
  { type: 'not_supported_error', code: 'model.unsupported' },
  { message: /^image input is not supported/, code: 'model.no_vision' },
  { message: /^audio input is not supported/, code: 'model.no_audio' },
  { message: /^video input is not supported/, code: 'model.unsupported' },
  { message: /^input .*is too large to process/, code: 'context_length_exceeded' },
  { message: /^(?:'\w+' is required$|Failed to parse (?:messages|tools): )/, code: 'request.invalid' },
];

/** Chats contain images. */
const MAX_CHAT_BYTES = 64 * 2 ** 20;

const inferPath: Provider['infer'] = ({ capability, path }, capabilities) => {
  if (!capabilities.includes(capability))
    return { kind: 'refuse', message: UNSUPPORTED[capability] ?? `A GGUF slot does not support "${capability}"` };
  if (path === '/v1/rerankings') return { kind: 'forward', path: '/v1/rerank', mistakes: MISTAKES };
  if (path === '/v1/responses') return { kind: 'translate', run: translateResponses, maxJsonBytes: MAX_CHAT_BYTES, mistakes: MISTAKES };
  if (SAME_PATHS.has(path)) return { kind: 'forward', path, mistakes: MISTAKES };
  return { kind: 'refuse', message: `A GGUF slot does not support the path "${path}"` };
};

/**
 * Flags for computing, responses and memory, of builds of several years. All others are refused through the API, also
 * those of later versions: llama-server has flags that load libraries, serve directories, write logs, listen on other
 * addresses, and run tools. Whether a build has a flag is for its program to say (`llama-options.ts`).
 */
const COMPUTING =
  '-t --threads -tb --threads-batch -C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll --numa --mlock --mmap --no-mmap -lm --load-mode --repack --no-repack -nr --check-tensors ' +
  '-ngl --gpu-layers --n-gpu-layers -dev --device -sm --split-mode -ts --tensor-split -mg --main-gpu -ot --override-tensor -cmoe --cpu-moe -ncmoe --n-cpu-moe ' +
  '-fit --fit -fitt --fit-target -fitc --fit-ctx -fa --flash-attn --op-offload --no-op-offload -kvo --kv-offload -nkvo --no-kv-offload --mmproj-offload --no-mmproj-offload';
const CONTEXT =
  '-c --ctx-size -b --batch-size -ub --ubatch-size -np --parallel -cb --cont-batching -nocb --no-cont-batching --keep --swa-full -ctxcp --ctx-checkpoints --swa-checkpoints -cms --checkpoint-min-step -kvu --kv-unified ' +
  '-no-kvu --no-kv-unified -ctk --cache-type-k -ctv --cache-type-v --cache-prompt --no-cache-prompt --cache-reuse -cram --cache-ram --context-shift --no-context-shift ' +
  '--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast --override-kv';
const SAMPLING =
  '-n --predict --n-predict -s --seed --samplers --sampler-seq --sampling-seq --ignore-eos --temp --temperature --top-k --top-p --min-p --top-nsigma --top-n-sigma --xtc-probability ' +
  '--xtc-threshold --typical --typical-p --repeat-last-n --repeat-penalty --presence-penalty --frequency-penalty --dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n ' +
  '--dry-sequence-breaker --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent -l --logit-bias --grammar -j --json-schema';
const ANSWERING =
  '-a --alias --embedding --embeddings --rerank --reranking --pooling --embd-normalize --jinja --no-jinja --chat-template --chat-template-kwargs --reasoning --reasoning-format ' +
  '--reasoning-budget --prefill-assistant --no-prefill-assistant -sp --special --spm-infill --image-min-tokens --image-max-tokens -r --reverse-prompt --warmup --no-warmup ' +
  '-to --timeout --threads-http -sps --slot-prompt-similarity --metrics --no-slots --no-webui --no-ui --offline --no-perf --draft --draft-n --draft-max --draft-min --draft-p-min ' +
  '--spec-type --spec-draft-n-max --spec-draft-n-min --spec-draft-p-min --spec-ngram-mod-n-max --spec-ngram-mod-n-min --spec-ngram-mod-n-match';

export const SAFE_FLAGS: ReadonlySet<string> = new Set([COMPUTING, CONTEXT, SAMPLING, ANSWERING].flatMap((flags) => flags.split(' ')));

export const gguf: Provider = {
  kind: 'gguf',
  program: PROGRAM,
  toolbox: { folder: 'gguf', backends: ['vulkan', 'rocm', 'cuda', 'cpu'], byBackend: true },
  containerPort: 8080,
  readyPath: '/health',
  nativePaths: { '/v1/tokenize': '/tokenize', '/v1/detokenize': '/detokenize', '/infill': '/infill', '/props': '/props' },
  safeFlags: SAFE_FLAGS,
  help: llamaHelp,
  keys: ggufKeys,
  models: ggufFormat,
  openProgram: openLlamaServer,
  rankBackends: (hardware) => rankBackends('gguf', hardware),
  devices: (backend) => (backend === 'npu' ? [] : devicesOf(backend)),
  buildEnv: (slot) => serverEnvironment(ggufSlot(slot)),
  // A build for the CPU has no device to leave out.
  addedVariables: ({ backend, env }) => (backend === 'cpu' && env['LLAMA_ARG_DEVICE'] === undefined ? ['LLAMA_ARG_DEVICE'] : []),
  startCmd: (slot) => serverCommand(ggufSlot(slot)),
  estimateMemory: (name, spec, model) => serverMemory(name, spec, { ...ggufModel(model), sizeBytes: model.sizeBytes }),
  splits: (name, spec, model) => serverSplits(name, spec, { ...ggufModel(model), sizeBytes: model.sizeBytes }),
  objection: (name, spec, model) => objectionToKeys(name, spec, ggufModel(model)) ?? objectionTo(spec, ggufModel(model)),
  capabilities: (name, spec, model) => roleOf(name, spec, ggufModel(model)).capabilities,
  abilities: (name, spec, model) => chatAbilities(name, spec, ggufModel(model)),
  promptCache,
  health: askHealth,
  readiness: askReadiness,
  infer: inferPath,
};

const ggufSlot = (slot: SlotContext): GgufSlot => ({ ...slot, model: ggufModel(slot.model) });
