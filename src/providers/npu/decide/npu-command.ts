/**
 * The command line, environment and devices of FastFlowLM (`flm serve`) for a slot. Its parser refuses a flag that is given twice, so a flag of the slot takes the place of
 * ours. Pure.
 */
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { Backend, Capability } from '../../../schema/slot/provider-kinds.ts';
import type { ModelFacts, SlotContext, MemoryDemand } from '../../provider.ts';
import { npuContents, type NpuTask } from './npu-models.ts';

export const PROGRAM = 'flm';
/** With which the program lists the models that it knows. It does not touch the NPU. */
export const LIST_ARGUMENTS: readonly string[] = ['list', '--json', '--quiet'];

/** By default the server closes every connection beyond ten, and refuses what waits beyond ten requests. The gateway limits both itself. */
const CONNECTIONS = '256';
const WAITING_REQUESTS = '128';

/** Flags that only decide how the server computes. Compared with the documentation of FastFlowLM 0.9.45. */
export const SAFE_FLAGS: ReadonlySet<string> = new Set([
  '--asr',
  '--embed',
  '--pmode',
  '--socket',
  '--q-len',
  '--img-pre-resize',
  '--prefill-chunk-len',
  '--preemption',
]);

const SHORT: Readonly<Record<string, string>> = {
  '--asr': '-a',
  '--embed': '-e',
  '--socket': '-s',
  '--q-len': '-q',
  '--ctx-len': '-c',
  '--port': '-p',
};

/** All NPUs: a machine may have accelerators of another kind, which take numbers as well. */
export function devicesOf(backend: Backend): readonly string[] {
  return backend === 'npu' ? ['/dev/accel'] : [];
}

/** The server loads the models beside the one for chats as it starts, and fetches what is missing, so only those that are there are named. */
export function serverCommand({ listen, model, modelPath, spec }: SlotContext): readonly [string, ...string[]] {
  const { args, context } = spec.model;
  const serves = capabilitiesOf(spec, model);
  const flags: readonly (readonly [string, string])[] = [
    ['--host', listen.host],
    ['--port', String(listen.port)],
    ['--asr', serves.includes('transcription') ? '1' : '0'],
    ['--embed', serves.includes('embedding') ? '1' : '0'],
    ['--socket', CONNECTIONS],
    ['--q-len', WAITING_REQUESTS],
    // The gateway answers browsers itself.
    ['--cors', '0'],
    ...(context === undefined ? [] : [['--ctx-len', String(context)] as const]),
  ];
  const own = flags.filter(([flag]) => valueOf(args, flag) === undefined || flag === '--host' || flag === '--port');
  // Without a name, the server has no model for chats.
  const name = npuContents(model)?.task === 'chat' ? [modelPath] : [];
  return [PROGRAM, 'serve', ...name, ...own.flat(), ...args];
}

/** `FLM_DISABLE_UPDATE_CHECK`: the server asks the internet for its newest version otherwise. The other variable shows which model the slot had, also if the command names none. */
export function serverEnvironment({ modelPath }: SlotContext): Readonly<Record<string, string>> {
  return { FLM_DISABLE_UPDATE_CHECK: '1', FLM_SLOT_MODEL: modelPath };
}

const CAPABILITY_OF = { chat: 'chat', embedding: 'embedding', transcription: 'transcription' } as const satisfies Record<
  NpuTask,
  Capability
>;

/** What one process serves: the model of the slot, and beside a model for chats the two others if their weights are there. */
export function capabilitiesOf({ model: { args } }: Pick<SlotSpec, 'model'>, model: ModelFacts): readonly Capability[] {
  const known = npuContents(model);
  if (known === undefined) return [];
  if (known.task !== 'chat') return [CAPABILITY_OF[known.task]];
  const embeds = known.embeds && (valueOf(args, '--embed') ?? '1') !== '0';
  const transcribes = known.transcribes && (valueOf(args, '--asr') ?? '1') !== '0';
  return ['chat', ...(embeds ? (['embedding'] as const) : []), ...(transcribes ? (['transcription'] as const) : [])];
}

/** What the slot says for a flag: `--asr 0`, `--asr=0` or `-a 0`; undefined if it does not. */
function valueOf(args: readonly string[], flag: string): string | undefined {
  const at = args.findLastIndex((arg) => arg === flag || arg === SHORT[flag]);
  const joined = args.findLast((arg) => arg.startsWith(`${flag}=`));
  return at === -1 ? joined?.slice(flag.length + 1) : (args[at + 1] ?? '');
}

/** The memory that FastFlowLM needs. The NPU computes in the memory of the host, so all of it is that of the host. Pure. */

/** What the server itself adds to the size of its model when it sets the limit of the memory that it locks, for each of the two others and for itself. */
const LISTENER_BYTES = 1e9;
const EMBEDDER_BYTES = 300e6;
const SERVER_BYTES = 512e6;
/** Of a token of the context, beyond the context that is in the footprint: keys and values of a model with 8 thousand million weights in 16 bits. Not measured. */
const TOKEN_BYTES = 128 * 1024;
const USUAL_CONTEXT = 4096;

export function serverMemory(spec: SlotSpec, model: ModelFacts): MemoryDemand {
  const known = npuContents(model);
  const serves = capabilitiesOf(spec, model);
  const beside = known?.task === 'chat' ? serves : [];
  const context = Math.max(0, (spec.model.context ?? 0) - (known?.context ?? USUAL_CONTEXT));
  const hostBytes =
    Math.max(model.sizeBytes, known?.footprintBytes ?? 0) +
    context * TOKEN_BYTES +
    SERVER_BYTES +
    (beside.includes('transcription') ? LISTENER_BYTES : 0) +
    (beside.includes('embedding') ? EMBEDDER_BYTES : 0);
  return { hostBytes, deviceBytes: 0 };
}
