/** Command line and memory of `flm serve`. It refuses repeated flags: those of the slot replace ours. Pure. */
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { Backend, Capability } from '../../../schema/slot/provider-kinds.ts';
import type { ModelFacts, SlotContext, MemoryDemand, Sized } from '../../provider.ts';
import { npuContents } from './npu-models.ts';

export const PROGRAM = 'flm';
/** Lists the known models without touching the NPU. */
export const LIST_ARGUMENTS: readonly string[] = ['list', '--json', '--quiet'];

/** Both are 10 by default. The gateway limits connections and requests itself. */
const CONNECTIONS = '256';
const WAITING_REQUESTS = '128';

/** Flags that only decide how the server computes. Compared with the documentation of FastFlowLM 0.9.45. */
export const SAFE_FLAGS: ReadonlySet<string> = new Set(
  '--asr --embed --pmode --socket --q-len --img-pre-resize --prefill-chunk-len --preemption'.split(' '),
);

const SHORT: Readonly<Record<string, string>> = {
  '--asr': '-a',
  '--embed': '-e',
  '--socket': '-s',
  '--q-len': '-q',
  '--ctx-len': '-c',
  '--port': '-p',
};

/** Accelerators of other kinds are numbered with NPUs. */
export const devicesOf = (backend: Backend): readonly string[] => (backend === 'npu' ? ['/dev/accel'] : []);

/** The server downloads missing models beside the chat model: only present ones are named. */
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
  // Without a name, the server has no chat model.
  const name = npuContents(model)?.task === 'chat' ? [modelPath] : [];
  return [PROGRAM, 'serve', ...name, ...own.flat(), ...args];
}

/** Without the first, the server asks the internet for its newest version. */
export const serverEnvironment = ({ modelPath }: SlotContext): Readonly<Record<string, string>> => ({
  FLM_DISABLE_UPDATE_CHECK: '1',
  FLM_SLOT_MODEL: modelPath,
});

export function capabilitiesOf({ model: { args } }: Pick<SlotSpec, 'model'>, model: ModelFacts): readonly Capability[] {
  const known = npuContents(model);
  if (known === undefined) return [];
  if (known.task !== 'chat') return [known.task];
  const embeds = known.embeds && (valueOf(args, '--embed') ?? '1') !== '0';
  const transcribes = known.transcribes && (valueOf(args, '--asr') ?? '1') !== '0';
  return ['chat', ...(embeds ? (['embedding'] as const) : []), ...(transcribes ? (['transcription'] as const) : [])];
}

function valueOf(args: readonly string[], flag: string): string | undefined {
  const at = args.findLastIndex((arg) => arg === flag || arg === SHORT[flag]);
  const joined = args.findLast((arg) => arg.startsWith(`${flag}=`));
  return at === -1 ? joined?.slice(flag.length + 1) : (args[at + 1] ?? '');
}

const LISTENER_BYTES = 1e9;
const EMBEDDER_BYTES = 300e6;
const SERVER_BYTES = 512e6;
/** Keys and values of a token beyond the context of the footprint, for 8 billion weights in 16 bits. Not measured. */
const TOKEN_BYTES = 128 * 1024;
const USUAL_CONTEXT = 4096;

/** The NPU computes in the memory of the host. */
export function serverMemory(spec: SlotSpec, model: Sized): MemoryDemand {
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
