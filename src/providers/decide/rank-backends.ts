/** Backends of a machine, from its devices and from reports of programs. Pure. */
import type { Machine, MachineDevice, Hardware } from '../../schema/status/hardware.ts';
import { kindFacts, type Backend, type ProviderKind } from '../../schema/slot/provider-kinds.ts';
import type { BackendVerdict, HostProgram, Provider } from '../provider.ts';

export function rankBackends(
  kind: ProviderKind,
  hardware: Machine | undefined,
  { backends, defaultBackend }: Pick<ReturnType<typeof kindFacts>, 'backends' | 'defaultBackend'> = kindFacts(kind),
): readonly BackendVerdict[] {
  const ranked = [defaultBackend, ...backends.filter((backend) => backend !== defaultBackend)];
  return ranked.map((backend) => {
    const missing = whyMissing(kind, backend, hardware);
    return missing === undefined ? { backend } : { backend, missing };
  });
}

/** A program on the host knows best; for a container, the devices decide. A clause; undefined: available or unknown. */
function whyMissing(kind: ProviderKind, backend: Backend, hardware: Machine | undefined): string | undefined {
  if (backend === 'cpu' || hardware === undefined) return undefined;
  const program = hardware.programs[kind];
  if (program !== undefined)
    return program.backends.includes(backend) ? undefined : (program.unavailable?.[backend] ?? `${program.name} reports no such device`);
  const { devices, devicesHidden } = hardware;
  if (devicesHidden !== undefined || devices.some(({ backends }) => backends.includes(backend))) return undefined;
  const labels = Map.groupBy(
    devices.filter((device) => device.unavailable?.[backend] !== undefined),
    (device) => device.unavailable?.[backend],
  );
  const reasons = [...labels].map(([why, affected]) => `${why} (${affected.map(labelOf).join(', ')})`);
  return reasons.length === 0 ? NOTHING_FOR[backend] : reasons.join('; ');
}

const labelOf = ({ id, name }: MachineDevice): string => (name === undefined ? id : `${id}: ${name}`);

const NOTHING_FOR: Readonly<Record<Exclude<Backend, 'cpu'>, string>> = {
  vulkan: 'this machine has no GPU',
  rocm: 'this machine has no GPU of AMD',
  cuda: 'this machine has no GPU of NVIDIA',
  npu: 'this machine has no NPU',
};

const DEVICES: Readonly<Record<Backend, readonly string[]>> = {
  vulkan: ['/dev/dri'],
  rocm: ['/dev/kfd', '/dev/dri'],
  cuda: ['nvidia.com/gpu=all'],
  cpu: [],
  npu: ['/dev/accel'],
};

/** Paths or CDI names of a backend's devices. */
export const devicesOf = (backend: Backend): readonly string[] => DEVICES[backend];

/**
 * As `rankBackends` of the provider, but an NPU that is not seen does not count: it is offered only where driver and
 * server were both detected. `resources`: extended resources of a cluster, which stand for devices there.
 */
export function seenBackends(
  { kind, rankBackends: rank }: Pick<Provider, 'kind' | 'rankBackends'>,
  hardware: Machine | undefined,
  resources?: Readonly<Partial<Record<Backend, string>>>,
): readonly BackendVerdict[] {
  return rank(hardware).map((verdict) => {
    if (verdict.backend !== 'npu' || verdict.missing !== undefined) return verdict;
    const missing = whyUnseen(kind, hardware, resources);
    return missing === undefined ? verdict : { ...verdict, missing };
  });
}

function whyUnseen(kind: ProviderKind, hardware: Machine | undefined, resources: Parameters<typeof seenBackends>[2]): string | undefined {
  if (resources !== undefined)
    return resources.npu === undefined ? 'no extended resource stands for NPUs: name it in "SVC_GPU_RESOURCES" ("npu=…")' : undefined;
  if (hardware === undefined) return 'the devices of this machine are not known yet';
  const isSeen = hardware.programs[kind] !== undefined || hardware.devices.some(({ backends }) => backends.includes('npu'));
  return isSeen ? undefined : (hardware.devicesHidden ?? NOTHING_FOR.npu);
}

interface BackendAvailability {
  readonly backend: Backend;
  readonly available: boolean;
  readonly reason: string;
}

/** Where the server would run: in images for these backends, or as a program of the machine. */
export type RunsIn =
  /** `absent`: backends whose image is not on this machine. */
  | { readonly kind: 'images'; readonly backends: readonly Backend[]; readonly absent?: readonly Backend[] }
  | { readonly kind: 'process'; readonly program: Awaited<ReturnType<HostProgram['describe']>> };

export function describeAvailability(
  provider: Provider,
  runsIn: RunsIn,
  hardware: Hardware | undefined,
  resources?: Parameters<typeof seenBackends>[2],
) {
  const verdicts = seenBackends(provider, hardware, resources);
  const backends = verdicts.map((verdict) => judge(verdict, runsIn));
  const usable = backends.filter(({ available }) => available).map(({ backend }) => backend);
  const unusable = backends.filter(({ available }) => !available);
  if (runsIn.kind === 'process' && !runsIn.program.ok) return { available: false, reason: runsIn.program.failure.message, backends };
  if (runsIn.kind === 'images' && runsIn.backends.length === 0 && (runsIn.absent ?? []).length === 0) {
    return {
      available: false,
      reason:
        provider.engine === undefined
          ? 'No toolbox image exists; build one with "svcctl toolbox build", or name one in "toolboxes.toml"'
          : `The engine names no image; set "image" in "engines/${provider.kind}.toml"`,
      backends,
    };
  }
  if (usable.length === 0) {
    const advice = runsIn.kind === 'images' ? 'make a device available, or build a toolbox image' : 'make a device available';
    return { available: false, reason: `${whyNot(unusable)}; ${advice}`, backends };
  }
  const others = unusable.length === 0 ? '' : `; ${whyNot(unusable)}`;
  return { available: true, reason: `${where(runsIn, usable)}${others}`, backends };
}

function judge({ backend, missing }: BackendVerdict, runsIn: RunsIn): BackendAvailability {
  const why = missing ?? whyNoImage(backend, runsIn);
  return { backend, available: why === undefined, reason: why ?? '' };
}

function whyNoImage(backend: Backend, runsIn: RunsIn): string | undefined {
  if (runsIn.kind === 'process' || runsIn.backends.includes(backend)) return undefined;
  return runsIn.absent?.includes(backend) === true ? 'its toolbox image is not on this machine' : 'there is no toolbox image';
}

function where(runsIn: RunsIn, usable: readonly Backend[]): string {
  const named = listOf(usable);
  if (runsIn.kind === 'images') return `Runs in toolbox images for ${named}`;
  const program = runsIn.program.ok ? runsIn.program.value : { name: '' };
  const installs = program.installs === undefined ? '' : ` (${program.installs})`;
  return `Runs as a process on this machine with ${named}: ${program.name}${installs}`;
}

function whyNot(backends: readonly BackendAvailability[]): string {
  const reasons = [...new Set(backends.map(({ reason }) => reason))];
  return reasons
    .map((reason) => {
      const named = backends.filter((each) => each.reason === reason).map(({ backend }) => backend);
      return `${listOf(named)} ${named.length === 1 ? 'is' : 'are'} not available, because ${reason}`;
    })
    .join('; ');
}

function listOf(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`);
  return quoted.length < 2 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')} and ${quoted.at(-1)}`;
}
