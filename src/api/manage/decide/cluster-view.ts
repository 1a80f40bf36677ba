/** The cluster as `GET /api/cluster` returns it. Pure. */
import type { z } from 'zod';
import type { Cluster } from '../../../schema/cluster-answers.ts';
import type { ClusterListing, PodListing } from '../../../schema/status/cluster-listing.ts';
import type { Immutable } from '../../server/answer.ts';
import { isoTime } from './iso-time.ts';
import { shorten } from '../../../schema/shorten.ts';

type Body = Immutable<z.output<typeof Cluster>>;

interface Question {
  /** Only pods of this slot. Default: of all slots. */
  readonly slot?: string | undefined;
  /** How many pods to list at most. */
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

/** What does not work must not be beyond the limit. */
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
