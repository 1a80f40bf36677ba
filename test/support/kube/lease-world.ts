/**
 * Candidates for one Lease in a simulated world where messages take time and get lost, servers become unreachable, processes crash, clocks differ and
 * users edit the Lease. Time is simulated, and a seed always produces the same history. Who leads is determined by the pure functions, at every
 * moment at which a term may have begun.
 */
import {
  afterConflict,
  afterFailure,
  afterObservation,
  afterWatchEvent,
  afterWrite,
  holdsLease,
  leadsAt,
  leaseToRelease,
  newCandidate,
  nextStep,
  termOf,
  type Candidate,
  type LeaseTimes,
} from '../../../src/cluster/leadership/decide/lease-decision.ts';
import { composeLease, composeRelease, parseLease, type LeaseWrite } from '../../../src/cluster/leadership/decide/lease-record.ts';
import type { KubeManifest, KubeObject } from '../../../src/cluster/client/ports.ts';
import { createRandom, type Random } from '../simulation/seeded-random.ts';

export interface LeaseWorldOptions {
  readonly seed: number;
  readonly times: LeaseTimes;
  readonly replicas: number;
  /** When edits and failures end, in milliseconds. */
  readonly incidentsUntil: number;
  readonly end: number;
}

export interface LeaseHistory {
  /** Moments at which there were two leaders. */
  readonly overlaps: readonly string[];
  readonly leadersAtEnd: readonly string[];
  readonly requests: number;
  readonly terms: number;
}

interface Replica {
  readonly name: string;
  life: number;
  alive: boolean;
  /** Its monotonic clock: `offset + rate × time`. */
  readonly offset: number;
  readonly rate: number;
  /** Its wall clock, which jumps. */
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
  const { times, incidentsUntil, end } = options;
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
  const contentOf = ({ name, candidate, wallOffset }: Replica): LeaseWrite => ({
    name: 'svc-controller',
    holder: name,
    instance: candidate.instance,
    durationMs: times.durationMs,
    nowMs: Math.max(0, 1_700_000_000_000 + time + wallOffset),
  });

  function checkLeaders(): void {
    const leaders = replicas.filter((replica) => replica.alive && leadsAt(replica.candidate, monotonic(replica)));
    if (leaders.length > 1) overlaps.push(`${Math.round(time)} ms: ${leaders.map(({ name }) => name).join(', ')}`);
    for (const replica of replicas) {
      const leads = leaders.includes(replica);
      if (leads && !replica.led) terms += 1;
      replica.led = leads;
    }
  }

  /** Carries a request out on the server. */
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
    notifyWatchers(stored);
    return stored;
  }

  function notifyWatchers(object: KubeObject | undefined): void {
    for (const replica of replicas) {
      if (time < replica.watchSilentUntil || time < replica.cutOffUntil || time < downUntil) continue;
      const { life } = replica;
      after(delay(), () => {
        if (!replica.alive || replica.life !== life || holdsLease(replica.candidate)) return;
        change(replica, afterWatchEvent(replica.candidate, object === undefined ? 'absent' : parseLease(object), monotonic(replica)));
      });
    }
  }

  const delay = (): number => (time > incidentsUntil || random.chance(0.9) ? random.int(1, 30) : random.int(1, times.durationMs / 2));

  function change(replica: Replica, next: Candidate): void {
    replica.candidate = next;
    const period = termOf(next);
    const now = monotonic(replica);
    if (period !== undefined && period.from > now) after((period.from - now) / replica.rate + 0.001, () => undefined);
    step(replica);
  }

  function step(replica: Replica): void {
    if (!replica.alive || replica.busy) return;
    const now = monotonic(replica);
    const next = nextStep(replica.candidate, now);
    const { life } = replica;
    if (next.kind === 'wait') {
      after(Math.max(0.01, (next.until - now) / replica.rate), () => {
        if (replica.life === life) step(replica);
      });
      return;
    }
    const verb = next.kind === 'observe' ? 'get' : next.before === undefined ? 'create' : 'replace';
    const manifest = next.kind === 'observe' ? undefined : composeLease(next.before, contentOf(replica));
    request(replica, verb, manifest, (answer) => {
      const at = monotonic(replica);
      const { candidate } = replica;
      if (answer === 'lost') change(replica, afterFailure(candidate, at, random.next()));
      else if (next.kind === 'observe')
        change(replica, afterObservation(candidate, typeof answer === 'object' ? parseLease(answer) : 'absent', at));
      else if (typeof answer === 'object')
        change(replica, afterWrite(candidate, next, { record: parseLease(answer), sentAt: now, now: at }));
      else change(replica, afterConflict(candidate, at, random.next()));
    });
  }

  /** The request or its response may be lost, and either may arrive after the timeout of the replica. */
  function request(replica: Replica, verb: Verb, manifest: KubeManifest | undefined, onAnswer: (answer: Answer | 'lost') => void): void {
    requests += 1;
    replica.busy = true;
    const { life } = replica;
    let over = false;
    const finish = (answer: Answer | 'lost'): void => {
      if (over) return;
      over = true;
      if (replica.life !== life || !replica.alive) return;
      replica.busy = false;
      onAnswer(answer);
    };
    after(times.requestTimeoutMs / replica.rate, () => finish('lost'));
    const cutOff = (): boolean => time < downUntil || time < replica.cutOffUntil;
    const lossy = time < incidentsUntil ? 0.03 : 0;
    if (cutOff() || random.chance(lossy)) return;
    after(delay(), () => {
      if (cutOff()) return;
      const answer = serve(verb, manifest);
      if (!random.chance(lossy)) after(delay(), () => finish(answer));
    });
  }

  function crash(replica: Replica): void {
    replica.alive = false;
    replica.life += 1;
    after(random.int(10, 2 * times.durationMs), () => begin(replica));
  }

  function stop(replica: Replica): void {
    const record = leaseToRelease(replica.candidate, monotonic(replica));
    const manifest = record === undefined ? undefined : composeRelease(record, contentOf(replica));
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

  const incidents: readonly [() => void, ...(() => void)[]] = [
    () => crash(random.pick([replicas[0] ?? never(), ...replicas])),
    () => crash(replicas.find(({ led }) => led) ?? random.pick([replicas[0] ?? never(), ...replicas])),
    () => stop(replicas.find(({ led }) => led) ?? random.pick([replicas[0] ?? never(), ...replicas])),
    () => void (downUntil = time + random.int(100, 3 * times.durationMs)),
    () => void (random.pick([replicas[0] ?? never(), ...replicas]).cutOffUntil = time + random.int(100, 3 * times.durationMs)),
    () => void (random.pick([replicas[0] ?? never(), ...replicas]).watchSilentUntil = time + random.int(100, 4 * times.durationMs)),
    () => void (random.pick([replicas[0] ?? never(), ...replicas]).wallOffset += random.int(-3_600_000, 3_600_000)),
    () => {
      stored = undefined;
      notifyWatchers(undefined);
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

  function causeIncident(): void {
    if (time >= incidentsUntil) return;
    random.pick(incidents)();
    after(random.int(50, times.durationMs), causeIncident);
  }

  for (const replica of replicas) after(random.chance(0.5) ? 0 : random.int(0, times.durationMs), () => begin(replica));
  after(random.int(50, times.durationMs), causeIncident);
  for (;;) {
    const next = popEarliest(events);
    if (next === undefined || next.at > end) break;
    time = next.at;
    checkLeaders();
    next.run();
    checkLeaders();
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
    // Much worse than any real clock.
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
