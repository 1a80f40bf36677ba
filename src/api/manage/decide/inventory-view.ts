/** Models, providers and downloads as JSON of the API. */
import type { z } from 'zod';
import type { BoardView } from '../../../reconciler/board.ts';
import type { Immutable } from '../../server/answer.ts';
import type { ModelDetail, ModelListing, ProviderListing, PullListing } from '../../ports.ts';
import type {
  ModelDetail as ModelDetailAnswer,
  ModelEntry,
  ProviderEntry,
  Pulls,
  DeviceEntry,
  Hardware,
} from '../../../schema/status/answers.ts';
import { viewProgress, isoTime } from './slot-view.ts';
import type { Cluster, RequestEntries } from '../../../schema/status/resource-answers.ts';
import type { ClusterListing, PodListing } from '../../../schema/status/cluster-listing.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import type { Device, HostFacts } from '../../../schema/status/hardware.ts';
import type { RecordedRequest } from '../request-record.ts';

export function viewModel(model: ModelListing): z.output<typeof ModelEntry> {
  return {
    id: model.id,
    kind: model.kind ?? null,
    provider: model.provider,
    family: model.family,
    present: model.present,
    size_bytes: model.sizeBytes ?? null,
    memory_bytes: model.memoryBytes ?? null,
    min_memory_bytes: model.minMemoryBytes ?? null,
    min_vram_bytes: model.minVramBytes ?? null,
    context: model.context ?? null,
    quantization: model.quantization ?? null,
    parameters: model.parameters ?? null,
    pooling: model.pooling ?? null,
    experts: model.experts === undefined ? null : { total: model.experts.total, active: model.experts.active ?? null },
    abilities: model.abilities === undefined ? null : [...model.abilities],
    license: model.license ?? null,
    license_url: model.licenseUrl ?? null,
    verified: model.verified ?? null,
    selectable: model.selectable,
    reason: model.reason ?? null,
  };
}

export function viewModelDetail(model: ModelDetail): Immutable<z.output<typeof ModelDetailAnswer>> {
  const files = model.files.map(({ path, sizeBytes, sha256, url, present }) => ({
    path,
    size_bytes: sizeBytes ?? null,
    sha256: sha256 ?? null,
    url: url ?? null,
    present,
  }));
  return { ...viewModel(model), files, sources: model.sources };
}

export function viewProvider(provider: ProviderListing): Immutable<z.output<typeof ProviderEntry>> {
  const { kind, serves, backends, defaultBackend, available, reason, availability } = provider;
  return { kind, serves, backends, default_backend: defaultBackend, available, reason, availability };
}

/** A download that slots wait for is listed once for each of them, and any other one by itself. Pure. */
export function viewPulls(board: BoardView, pulls: readonly PullListing[]): z.output<typeof Pulls> {
  const ofSlots = [...board.slots.values()].flatMap(({ name, spec, status }) => {
    const progress = viewProgress(status);
    if (progress === null) return [];
    const pull = pulls.find(({ id, progress: own }) => id === spec?.model.default && own?.what === status.progress?.what);
    return [{ slot: name, model: pull?.id ?? null, failed: false, message: '', ...progress }];
  });
  const listed = new Set(ofSlots.map(({ model }) => model));
  const others = pulls.filter(({ id }) => !listed.has(id)).map(viewPull);
  return { pulls: [...ofSlots, ...others] };
}

function viewPull({ id, progress, failure }: PullListing): z.output<typeof Pulls>['pulls'][number] {
  const shown = viewProgress({ progress: progress ?? { what: id, doneBytes: 0 } }) ?? NOTHING;
  return { slot: null, model: id, failed: failure !== undefined, message: failure?.message ?? '', ...shown };
}

const NOTHING = { what: '', done_bytes: 0, total_bytes: null, bytes_per_second: null, seconds_left: null };

type Body = Immutable<z.output<typeof Cluster>>;

interface Question {
  readonly slot?: string | undefined;
  readonly limit: number;
}

/** A status text of Kubernetes can be long. Longer messages are cut. */
const LONGEST_MESSAGE = 1000;

/** `listing`: undefined if the service does not run in a cluster. */
export function viewCluster(listing: ClusterListing | undefined, { slot, limit }: Question): Body {
  if (listing === undefined) return { replica: null, leader: null, leads: true, pods: [], pods_total: 0, pods_ready: 0 };
  const { replica, leader, leads } = listing;
  const pods = listing.pods.filter((pod) => slot === undefined || pod.slot === slot).toSorted(byNeed);
  return {
    replica,
    leader: leader ?? null,
    leads,
    pods: pods.slice(0, limit).map(viewPod),
    pods_total: pods.length,
    pods_ready: pods.filter(({ ready }) => ready).length,
  };
}

/** Pods that do not work come first, so that the limit never hides them. */
function byNeed(one: PodListing, other: PodListing): number {
  return rankOf(one) - rankOf(other) || compareTexts(one.slot ?? '', other.slot ?? '') || compareTexts(one.name, other.name);
}

function rankOf({ ready, terminating, waiting }: PodListing): number {
  if (waiting !== undefined) return 0;
  return terminating ? 2 : ready ? 3 : 1;
}

const compareTexts = (one: string, other: string): number => (one === other ? 0 : one < other ? -1 : 1);

function viewPod({ name, slot, phase, ready, terminating, restarts, node, createdAt, waiting }: PodListing): Body['pods'][number] {
  const message = waiting?.message ?? '';
  return {
    name,
    slot: slot ?? null,
    phase,
    ready,
    terminating,
    restarts,
    node: node ?? null,
    created_at: isoTime(createdAt),
    reason: waiting?.reason ?? null,
    message: shorten(message, LONGEST_MESSAGE),
  };
}

/** Said where no machine decides what can be computed with. */
const IN_A_CLUSTER = 'the service runs in a cluster, whose nodes "kubectl describe nodes" shows, with the devices that pods may request';

export function viewHardware({ memoryTotalBytes, memoryAvailableBytes, hardware }: HostFacts): Immutable<z.output<typeof Hardware>> {
  const usable = { memory_total_bytes: memoryTotalBytes ?? null, memory_available_bytes: memoryAvailableBytes ?? null };
  if (hardware === undefined)
    return { source: 'none', recording: null, cpu: null, ...usable, devices: [], devices_hidden: IN_A_CLUSTER, programs: [] };
  const { source, cpu, devices, devicesHidden, programs } = hardware;
  return {
    source: source.kind,
    recording: source.kind === 'recording' ? { file: source.file, about: source.about } : null,
    cpu: { model: cpu.model ?? null, architecture: cpu.architecture, threads: cpu.threads, cores: cpu.cores ?? null },
    ...usable,
    devices: devices.map(viewDevice),
    devices_hidden: devicesHidden ?? null,
    programs: Object.entries(programs).map(([provider, { name, backends }]) => ({ provider, name, backends })),
  };
}

function viewDevice(device: Device): Immutable<z.output<typeof DeviceEntry>> {
  const { memory } = device;
  return {
    id: device.id,
    kind: device.kind,
    vendor: device.vendor,
    name: device.name ?? null,
    pci_address: device.pciAddress ?? null,
    driver: device.driver ?? null,
    architecture: device.architecture ?? null,
    path: device.path ?? null,
    backends: device.backends,
    unavailable: Object.entries(device.unavailable ?? {}).map(([backend, reason]) => ({ backend, reason })),
    memory_total_bytes: memory?.totalBytes ?? null,
    memory_free_bytes: memory === undefined || memory.useUnknown === true ? null : memory.freeBytes,
    memory_dedicated_bytes: memory?.dedicatedBytes ?? null,
    unified: device.unified,
  };
}

export function viewRequest(request: RecordedRequest): Immutable<z.output<typeof RequestEntries>>['requests'][number] {
  const { at, slot, route, status, because, seconds, ttftSeconds, parkedSeconds } = request;
  return {
    at: new Date(at).toISOString(),
    slot: slot ?? null,
    route,
    status,
    because,
    seconds,
    first_seconds: ttftSeconds ?? null,
    parked_seconds: parkedSeconds ?? null,
  };
}
