/** Downloads, pods, hardware and requests as JSON of the API. */
import type { z } from 'zod';
import type { BoardView } from '../../../reconciler/board.ts';
import type { Immutable } from '../../server/answer.ts';
import type { PullListing } from '../../ports.ts';
import * as answers from '../../../schema/status/answers.ts';
import { answerOf, progressFacts, isoTime } from './slot-view.ts';
import { Cluster } from '../../../schema/status/resource-answers.ts';
import type { ClusterListing, PodListing } from '../../../schema/status/cluster-listing.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import type { Reason } from '../../../schema/status/reasons.ts';
import type { Device, HostFacts } from '../../../schema/status/hardware.ts';

/**
 * A download that slots wait for is listed once for each of them, a failed one until its next attempt, and any other
 * one by itself. Pure.
 */
export function viewPulls(board: BoardView, pulls: readonly PullListing[]): Immutable<z.output<typeof answers.Pulls>> {
  const ofSlots = [...board.slots.values()].flatMap(({ name, spec, status: { progress, conditions } }) => {
    const failed = conditions.find(({ reason }) => PULL_FAILURES.has(reason));
    if (progress === undefined) {
      const id = failed?.reason === 'ImagePullFailed' ? undefined : spec?.model.default;
      if (failed === undefined || pulls.some((each) => each.id === id)) return [];
      return [{ slot: name, model: id, failed: true, message: failed.message, ...progressFacts(NOTHING) }];
    }
    const pull = pulls.find(({ id, progress: own }) => id === spec?.model.default && own?.what === progress.what);
    return [{ slot: name, model: pull?.id, failed: false, message: '', ...progressFacts(progress) }];
  });
  const listed = new Set(ofSlots.map(({ model }) => model));
  const others = pulls
    .filter(({ id }) => !listed.has(id))
    .map(({ id, progress = { what: id, doneBytes: 0 }, failure }) => {
      return { model: id, failed: failure !== undefined, message: failure?.message ?? '', ...progressFacts(progress) };
    });
  return answerOf(answers.Pulls, { pulls: [...ofSlots, ...others] });
}

/** Why a download for a slot has failed, until its next attempt. */
const PULL_FAILURES: ReadonlySet<string> = new Set<Reason>([
  'ImagePullFailed',
  'ModelPullFailed',
  'ModelHashMismatch',
  'ModelSourceRefused',
  'ModelGated',
  'DiskFull',
]);
const NOTHING = { what: '', doneBytes: 0 };

type Question = Readonly<{ slot?: string | undefined; limit: number }>;

/** A status text of Kubernetes can be long. Longer messages are cut. */
const LONGEST_MESSAGE = 1000;

/** `listing`: undefined if the service does not run in a cluster. */
export function viewCluster(listing: Partial<ClusterListing> = {}, { slot, limit }: Question): Immutable<z.output<typeof Cluster>> {
  const { replica, leader, leads = true } = listing;
  const pods = (listing.pods ?? []).filter((pod) => slot === undefined || pod.slot === slot).toSorted(byNeed);
  const podsReady = pods.filter(({ ready }) => ready).length;
  return answerOf(Cluster, { replica, leader, leads, pods: pods.slice(0, limit).map(podFacts), podsTotal: pods.length, podsReady });
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

function podFacts({ createdAt, waiting, ...pod }: PodListing) {
  return { ...pod, createdAt: isoTime(createdAt), reason: waiting?.reason, message: shorten(waiting?.message ?? '', LONGEST_MESSAGE) };
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
    recording: source.kind === 'recording' ? source : null,
    cpu,
    devices: devices.map(deviceFacts),
    devicesHidden,
    programs: Object.entries(programs).map(([provider, { name, backends }]) => ({ provider, name, backends })),
  });
}

function deviceFacts({ memory, unavailable = {}, ...device }: Device) {
  return {
    ...device,
    unavailable: Object.entries(unavailable).map(([backend, reason]) => ({ backend, reason })),
    memoryTotalBytes: memory?.totalBytes,
    memoryFreeBytes: memory?.useUnknown === true ? null : memory?.freeBytes,
    memoryDedicatedBytes: memory?.dedicatedBytes,
  };
}
