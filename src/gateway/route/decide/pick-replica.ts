/**
 * Picks the replica of a slot that serves a request. A conversation has an order of the replicas of its own, by
 * rendezvous hashing, which every gateway computes alike: the first replica with room gets it. So its turns meet the
 * cache of the turns before, and a replica that comes or goes moves only its share of the conversations.
 *
 * As in "Consistent Hashing with Bounded Loads" (arXiv:1608.01350), a replica has room for 1.25 of the mean of the
 * requests in flight, in whole requests. Conversations meet by chance, so a replica that got no more than 1.25 of its
 * even share of the latest requests has room for a standard deviation more: otherwise, every fourth turn would have to
 * leave its replica where few requests are in flight.
 *
 * Requests without a conversation take turns over the replicas with the fewest. Pure.
 */

export interface Replica {
  /** `hashText` of its address. */
  readonly hash: number;
  readonly inFlight: number;
  /** Grows with each request that it gets. */
  readonly pickedAt: number;
  /** Number of the latest requests that it got; older ones count less. */
  readonly recent: number;
}

/** Less room moves more turns away from their cache; more room leaves replicas idle beside busy ones. */
const ROOM = 1.25;

/** `conversation`: what identifies it. Undefined without replicas. */
export function pickReplica<Each extends Replica>(replicas: readonly Each[], conversation: string | undefined): Each | undefined {
  return conversation === undefined ? leastBusy(replicas) : firstWithRoom(replicas, hashText(conversation));
}

/** Whole requests, of which the new one is one. Some replica is always below it. `isEven`: see above. */
export function mostInFlight(inFlight: number, replicas: number, isEven: boolean): number {
  const mean = (inFlight + 1) / replicas;
  return Math.ceil(ROOM * mean + (isEven ? Math.sqrt(mean) : 0));
}

function firstWithRoom<Each extends Replica>(replicas: readonly Each[], conversation: number): Each | undefined {
  let inFlight = 0;
  let recent = 0;
  for (const replica of replicas) {
    inFlight += replica.inFlight;
    recent += replica.recent;
  }
  const most = mostInFlight(inFlight, replicas.length, false);
  const mostIfEven = mostInFlight(inFlight, replicas.length, true);
  const evenRecent = (ROOM * recent) / replicas.length;
  let best: Each | undefined;
  let bestScore = -1;
  for (const replica of replicas) {
    if (replica.inFlight >= (replica.recent > evenRecent ? most : mostIfEven)) continue;
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
