/**
 * Picks the replica of a slot that serves a request. A conversation has an order of the replicas of its own, by
 * rendezvous hashing, which every gateway computes alike: the first replica with room gets it. So its turns meet the
 * cache of the turns before, and a replica that comes or goes moves only its share of the conversations. A replica has
 * room for 1.25 of its even share of the requests in flight, as in "Consistent Hashing with Bounded Loads"
 * (arXiv:1608.01350). Requests without a conversation take turns over the replicas with the fewest. Pure.
 */

export interface Replica {
  /** `hashText` of its address. */
  readonly hash: number;
  readonly inFlight: number;
  /** Grows with each request that it gets. */
  readonly pickedAt: number;
}

/** Less room moves more turns away from their cache; more room leaves replicas idle beside busy ones. */
const ROOM = 1.25;

/** `conversation`: what identifies it. Undefined without replicas. */
export function pickReplica<Each extends Replica>(replicas: readonly Each[], conversation: string | undefined): Each | undefined {
  return conversation === undefined ? leastBusy(replicas) : firstWithRoom(replicas, hashText(conversation));
}

/** Whole requests, of which the new one is one. Some replica is always below it. */
export const mostInFlight = (inFlight: number, replicas: number): number => Math.ceil((ROOM * (inFlight + 1)) / replicas);

function firstWithRoom<Each extends Replica>(replicas: readonly Each[], conversation: number): Each | undefined {
  let inFlight = 0;
  for (const replica of replicas) inFlight += replica.inFlight;
  const most = mostInFlight(inFlight, replicas.length);
  let best: Each | undefined;
  let bestScore = -1;
  for (const replica of replicas) {
    if (replica.inFlight >= most) continue;
    const score = mix(conversation ^ replica.hash);
    if (score <= bestScore) continue;
    best = replica;
    bestScore = score;
  }
  return best;
}

function leastBusy<Each extends Replica>(replicas: readonly Each[]): Each | undefined {
  let best: Each | undefined;
  for (const replica of replicas) {
    const isBetter =
      best === undefined || replica.inFlight < best.inFlight || (replica.inFlight === best.inFlight && replica.pickedAt < best.pickedAt);
    if (isBetter) best = replica;
  }
  return best;
}

/** FNV-1a with 32 bits, which costs less than a call of `node:crypto` for texts of this length. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return mix(hash);
}

/** The finalizer of MurmurHash3: each bit of the result depends on all bits. */
function mix(value: number): number {
  const once = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}
