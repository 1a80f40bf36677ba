/**
 * Candidates for one lease in a world where messages take time and get lost, servers go away, processes die, clocks differ and people meddle. Time is
 * simulated: one seed, one history. Who leads is asked of the pure decisions, at every moment at which somebody may have begun to.
 */
import {
  claimed,
  failed,
  heard,
  holds,
  leadPeriod,
  leadsAt,
  looked,
  newCandidate,
  nextStep,
  outrun,
  toRelease,
  type Candidate,
  type LeaseTimes,
} from '../../../src/cluster/leadership/decide/lease-decision.ts';
import { claimLease, readLease, releaseLease, type LeaseClaim } from '../../../src/cluster/leadership/decide/lease-record.ts';
import type { KubeManifest, KubeObject } from '../../../src/cluster/client/ports.ts';
import { createRandom, type Random } from '../simulation/seeded-random.ts';

export interface LeaseWorldOptions {
  readonly seed: number;
  readonly times: LeaseTimes;
  readonly replicas: number;
  /** Meddling and failing ends then, in milliseconds. */
  readonly troubleUntil: number;
  readonly end: number;
}

export interface LeaseHistory {
  /** Moments at which two led. */
  readonly overlaps: readonly string[];
  readonly leadersAtEnd: readonly string[];
  readonly requests: number;
  readonly terms: number;
}

interface Replica {
  readonly name: string;
  life: number;
  alive: boolean;
  /** Own monotonic clock: `offset + rate × time`. */
  readonly offset: number;
  readonly rate: number;
  /** Own wall clock, which jumps. */
  wallOffset: number;
  candidate: Candidate;
  busy: boolean;
  watchSilentUntil: number;
  cutOffUntil: number;
  led: boolean;
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

type Verb = 'create' | 'replace' | 'get';
type Answer = KubeObject | 'Conflict' | 'NotFound' | 'AlreadyExists';

export function simulateLease(options: LeaseWorldOptions): LeaseHistory {
  const { times, troubleUntil, end } = options;
  const random = createRandom(options.seed);
  const events: Event[] = [];
  const overlaps: string[] = [];
  let time = 0;
  let order = 0;
  let version = 1;
  let stored: KubeObject | undefined;
  let downUntil = 0;
  let requests = 0;
  let terms = 0;
  const replicas: Replica[] = Array.from({ length: options.replicas }, (_, index) => newReplica(`pod-${index}`, times, random));

  const after = (ms: number, run: () => void): void => {
    order += 1;
    events.push({ at: time + ms, order, run });
  };
  const monotonic = (replica: Replica): number => replica.offset + replica.rate * time;
  const claimOf = ({ name, candidate, wallOffset }: Replica): LeaseClaim => ({
    name: 'svc-controller',
    holder: name,
    instance: candidate.instance,
    durationMs: times.durationMs,
    nowMs: Math.max(0, 1_700_000_000_000 + time + wallOffset),
  });

  function referee(): void {
    const leaders = replicas.filter((replica) => replica.alive && leadsAt(replica.candidate, monotonic(replica)));
    if (leaders.length > 1) overlaps.push(`${Math.round(time)} ms: ${leaders.map(({ name }) => name).join(', ')}`);
    for (const replica of replicas) {
      const leads = leaders.includes(replica);
      if (leads && !replica.led) terms += 1;
      replica.led = leads;
    }
  }

  /** At the server, at one moment. */
  function serve(verb: Verb, manifest: KubeManifest | undefined): Answer {
    if (verb === 'get' || manifest === undefined) return stored ?? 'NotFound';
    if (verb === 'create' && stored !== undefined) return 'AlreadyExists';
    if (verb === 'replace' && stored === undefined) return 'NotFound';
    const { resourceVersion, uid } = manifest.metadata;
    if (verb === 'replace' && (stored?.metadata.resourceVersion !== resourceVersion || stored?.metadata.uid !== uid)) return 'Conflict';
    return store({ ...manifest, metadata: { ...manifest.metadata, uid: stored?.metadata.uid ?? `uid-${version}` } });
  }

  function store(object: KubeObject): KubeObject {
    version += 1;
    stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    tellWatchers(stored);
    return stored;
  }

  function tellWatchers(object: KubeObject | undefined): void {
    for (const replica of replicas) {
      if (time < replica.watchSilentUntil || time < replica.cutOffUntil || time < downUntil) continue;
      const { life } = replica;
      after(delay(), () => {
        if (!replica.alive || replica.life !== life || holds(replica.candidate)) return;
        change(replica, heard(replica.candidate, object === undefined ? 'absent' : readLease(object), monotonic(replica)));
      });
    }
  }

  const delay = (): number => (time > troubleUntil || random.chance(0.9) ? random.int(1, 30) : random.int(1, times.durationMs / 2));

  function change(replica: Replica, next: Candidate): void {
    replica.candidate = next;
    const period = leadPeriod(next);
    const now = monotonic(replica);
    if (period !== undefined && period.from > now) after((period.from - now) / replica.rate + 0.001, () => undefined);
    step(replica);
  }

  function step(replica: Replica): void {
    if (!replica.alive || replica.busy) return;
    const now = monotonic(replica);
    const next = nextStep(replica.candidate, now);
    const { life } = replica;
    if (next.kind === 'rest') {
      after(Math.max(0.01, (next.until - now) / replica.rate), () => {
        if (replica.life === life) step(replica);
      });
      return;
    }
    const verb = next.kind === 'look' ? 'get' : next.before === undefined ? 'create' : 'replace';
    const manifest = next.kind === 'look' ? undefined : claimLease(next.before, claimOf(replica));
    request(replica, verb, manifest, (answer) => {
      const at = monotonic(replica);
      const { candidate } = replica;
      if (answer === 'lost') change(replica, failed(candidate, at, random.next()));
      else if (next.kind === 'look') change(replica, looked(candidate, typeof answer === 'object' ? readLease(answer) : 'absent', at));
      else if (typeof answer === 'object') change(replica, claimed(candidate, next, readLease(answer), now, at));
      else change(replica, outrun(candidate, at, random.next()));
    });
  }

  /** The request may be lost on its way, its answer on the way back, and either may come later than the replica waits. */
  function request(replica: Replica, verb: Verb, manifest: KubeManifest | undefined, take: (answer: Answer | 'lost') => void): void {
    requests += 1;
    replica.busy = true;
    const { life } = replica;
    let over = false;
    const settle = (answer: Answer | 'lost'): void => {
      if (over) return;
      over = true;
      if (replica.life !== life || !replica.alive) return;
      replica.busy = false;
      take(answer);
    };
    after(times.requestMs / replica.rate, () => settle('lost'));
    const cutOff = (): boolean => time < downUntil || time < replica.cutOffUntil;
    const lossy = time < troubleUntil ? 0.03 : 0;
    if (cutOff() || random.chance(lossy)) return;
    after(delay(), () => {
      if (cutOff()) return;
      const answer = serve(verb, manifest);
      if (!random.chance(lossy)) after(delay(), () => settle(answer));
    });
  }

  function crash(replica: Replica): void {
    replica.alive = false;
    replica.life += 1;
    after(random.int(10, 2 * times.durationMs), () => begin(replica));
  }

  function stop(replica: Replica): void {
    const record = toRelease(replica.candidate, monotonic(replica));
    const manifest = record === undefined ? undefined : releaseLease(record, claimOf(replica));
    crash(replica);
    if (manifest !== undefined && time >= downUntil) after(delay(), () => void serve('replace', manifest));
  }

  function begin(replica: Replica): void {
    if (replica.alive) return;
    replica.alive = true;
    replica.busy = false;
    replica.candidate = newCandidate(replica.name, `${replica.name}-${replica.life}`, times);
    step(replica);
  }

  const deeds: readonly [() => void, ...(() => void)[]] = [
    () => crash(random.pick([replicas[0] ?? never(), ...replicas])),
    () => crash(replicas.find(({ led }) => led) ?? random.pick([replicas[0] ?? never(), ...replicas])),
    () => stop(replicas.find(({ led }) => led) ?? random.pick([replicas[0] ?? never(), ...replicas])),
    () => void (downUntil = time + random.int(100, 3 * times.durationMs)),
    () => void (random.pick([replicas[0] ?? never(), ...replicas]).cutOffUntil = time + random.int(100, 3 * times.durationMs)),
    () => void (random.pick([replicas[0] ?? never(), ...replicas]).watchSilentUntil = time + random.int(100, 4 * times.durationMs)),
    () => void (random.pick([replicas[0] ?? never(), ...replicas]).wallOffset += random.int(-3_600_000, 3_600_000)),
    () => {
      stored = undefined;
      tellWatchers(undefined);
    },
    () => {
      if (stored === undefined) return;
      const { spec } = stored;
      store({
        ...stored,
        spec: { ...Object(spec), ...random.pick([{ holderIdentity: '' }, { holderIdentity: 'nobody-known' }, { renewTime: 7 }]) },
      });
    },
  ];

  function meddle(): void {
    if (time >= troubleUntil) return;
    random.pick(deeds)();
    after(random.int(50, times.durationMs), meddle);
  }

  for (const replica of replicas) after(random.chance(0.5) ? 0 : random.int(0, times.durationMs), () => begin(replica));
  after(random.int(50, times.durationMs), meddle);
  for (;;) {
    const next = popEarliest(events);
    if (next === undefined || next.at > end) break;
    time = next.at;
    referee();
    next.run();
    referee();
  }
  time = end;
  return {
    overlaps,
    leadersAtEnd: replicas.filter((replica) => replica.alive && leadsAt(replica.candidate, monotonic(replica))).map(({ name }) => name),
    requests,
    terms,
  };
}

function newReplica(name: string, times: LeaseTimes, random: Random): Replica {
  return {
    name,
    life: 0,
    alive: false,
    offset: random.int(0, 1_000_000_000),
    // Far worse than any clock is.
    rate: 0.97 + 0.06 * random.next(),
    wallOffset: random.int(-86_400_000, 86_400_000),
    candidate: newCandidate(name, `${name}-0`, times),
    busy: false,
    watchSilentUntil: 0,
    cutOffUntil: 0,
    led: false,
  };
}

function popEarliest(events: Event[]): Event | undefined {
  let best = 0;
  for (let index = 1; index < events.length; index += 1) {
    const [one, other] = [events[index], events[best]];
    if (one !== undefined && other !== undefined && (one.at < other.at || (one.at === other.at && one.order < other.order))) best = index;
  }
  const found = events[best];
  const last = events.pop();
  if (found !== last && last !== undefined) events[best] = last;
  return found;
}

function never(): never {
  throw new Error('There is no replica');
}
