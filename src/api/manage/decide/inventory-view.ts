/** Models, providers and downloads as JSON of the API. */
import type { z } from 'zod';
import type { BoardView } from '../../../reconciler/board.ts';
import type { Immutable } from '../../server/answer.ts';
import type { ModelDetail, ModelListing, ProviderListing, PullListing } from '../../ports.ts';
import * as answers from '../../../schema/status/answers.ts';
import { answerOf, viewProgress, isoTime } from './slot-view.ts';
import { Cluster, RequestEntries } from '../../../schema/status/resource-answers.ts';
import type { ClusterListing, PodListing } from '../../../schema/status/cluster-listing.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import type { Device, HostFacts } from '../../../schema/status/hardware.ts';
import type { RecordedRequest } from '../request-record.ts';

export function viewModel(model: ModelListing) {
  const { experts } = model;
  return answerOf(answers.ModelEntry, { ...model, experts: experts && { total: experts.total, active: experts.active ?? null } });
}

export function viewModelDetail(model: ModelDetail): Immutable<z.output<typeof answers.ModelDetail>> {
  const files = model.files.map((file) => answerOf(answers.ModelDetail.shape.files.element, file));
  return { ...viewModel(model), files, sources: model.sources };
}

export const viewProvider = (provider: ProviderListing) => answerOf(answers.ProviderEntry, provider);

/**
 * A download that slots wait for is listed once for each of them, a failed one of an image until its next attempt, and
 * any other one by itself. Pure.
 */
export function viewPulls(board: BoardView, pulls: readonly PullListing[]): z.output<typeof answers.Pulls> {
  const ofSlots = [...board.slots.values()].flatMap(({ name, spec, status }) => {
    const progress = viewProgress(status);
    const failed = status.conditions.find(({ reason }) => reason === 'ImagePullFailed');
    if (progress === null)
      return failed === undefined ? [] : [{ ...NOTHING, slot: name, model: null, failed: true, message: failed.message }];
    const pull = pulls.find(({ id, progress: own }) => id === spec?.model.default && own?.what === status.progress?.what);
    return [{ slot: name, model: pull?.id ?? null, failed: false, message: '', ...progress }];
  });
  const listed = new Set(ofSlots.map(({ model }) => model));
  const others = pulls.filter(({ id }) => !listed.has(id)).map(viewPull);
  return { pulls: [...ofSlots, ...others] };
}

function viewPull({ id, progress, failure }: PullListing): z.output<typeof answers.Pulls>['pulls'][number] {
  const shown = viewProgress({ progress: progress ?? { what: id, doneBytes: 0 } }) ?? NOTHING;
  return { slot: null, model: id, failed: failure !== undefined, message: failure?.message ?? '', ...shown };
}

const NOTHING = { what: '', done_bytes: 0, total_bytes: null, bytes_per_second: null, seconds_left: null };

type Body = Immutable<z.output<typeof Cluster>>;

type Question = Readonly<{ slot?: string | undefined; limit: number }>;

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

function viewPod({ createdAt, waiting, ...pod }: PodListing): Body['pods'][number] {
  const message = shorten(waiting?.message ?? '', LONGEST_MESSAGE);
  return answerOf(Cluster.shape.pods.element, { ...pod, createdAt: isoTime(createdAt), reason: waiting?.reason, message });
}

/** Said where no machine decides what can be computed with. */
const IN_A_CLUSTER = 'the service runs in a cluster, whose nodes "kubectl describe nodes" shows, with the devices that pods may request';

export function viewHardware({ hardware, ...memory }: HostFacts): Immutable<z.output<typeof answers.Hardware>> {
  if (hardware === undefined)
    return answerOf(answers.Hardware, { ...memory, source: 'none', devices: [], devicesHidden: IN_A_CLUSTER, programs: [] });
  const { source, cpu, devices, devicesHidden, programs } = hardware;
  return answerOf(answers.Hardware, {
    ...memory,
    source: source.kind,
    recording: source.kind === 'recording' ? { file: source.file, about: source.about } : null,
    cpu: { model: cpu.model ?? null, architecture: cpu.architecture, threads: cpu.threads, cores: cpu.cores ?? null },
    devices: devices.map(viewDevice),
    devicesHidden,
    programs: Object.entries(programs).map(([provider, { name, backends }]) => ({ provider, name, backends })),
  });
}

function viewDevice({ memory, unavailable = {}, ...device }: Device): Immutable<z.output<typeof answers.DeviceEntry>> {
  return answerOf(answers.DeviceEntry, {
    ...device,
    unavailable: Object.entries(unavailable).map(([backend, reason]) => ({ backend, reason })),
    memoryTotalBytes: memory?.totalBytes,
    memoryFreeBytes: memory?.useUnknown === true ? null : memory?.freeBytes,
    memoryDedicatedBytes: memory?.dedicatedBytes,
  });
}

export function viewRequest({ at, ttftSeconds, ...request }: RecordedRequest) {
  const facts = { ...request, at: new Date(at).toISOString(), firstSeconds: ttftSeconds };
  return answerOf(RequestEntries.shape.requests.element, facts);
}
