import { describe, expect, test } from '@jest/globals';
import { createLeadership, type LeaseLeadership } from '../../../src/cluster/leadership/leadership.ts';
import { createLeaseServer, type LeaseConnection, type LeaseServer } from '../../support/kube/lease-api.ts';

const LEASE = 'svc-controller';
/** The shortest possible duration: a takeover after a crash takes this long. */
const DURATION_MS = 2000;
const GARBAGE = { holderIdentity: 'nobody', leaseTransitions: -3, renewTime: 'soon' };
const RELEASED = { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 4 };

interface Replica {
  readonly leadership: LeaseLeadership;
  readonly connection: LeaseConnection;
  readonly warnings: string[];
  stop(): Promise<void>;
}

interface Scene {
  readonly server: LeaseServer;
  begin(identity: string, wall?: { now: number }): Replica;
  /** Polls every few milliseconds, and checks that there are never two leaders. Returns how long it took. */
  until(holds: () => boolean): Promise<number>;
  twoReplicas(): Promise<{ leader: Replica; follower: Replica }>;
  spec(): Record<string, unknown>;
}

/** An earlier replica has released the lease, unless `fresh`. The scenarios run concurrently, since most of them wait. */
function scenario(what: string, run: (scene: Scene) => Promise<void>, { fresh = false } = {}): void {
  test.concurrent(what, async () => {
    const server = createLeaseServer();
    if (!fresh) server.put(LEASE, (before) => ({ ...before, spec: RELEASED }));
    const running: Replica[] = [];
    const made: Scene = {
      server,
      begin(identity, wall) {
        const replica = startReplica(server, identity, wall ?? { now: Date.now() });
        running.push(replica);
        return replica;
      },
      async until(holds) {
        const begun = performance.now();
        while (!holds()) {
          expect(running.filter(leads).length).toBeLessThanOrEqual(1);
          await sleep(5);
        }
        return performance.now() - begun;
      },
      async twoReplicas() {
        const both = [made.begin('pod-a'), made.begin('pod-b')];
        await made.until(() => both.some(leads));
        const [leader, follower] = both.toSorted((one, other) => Number(leads(other)) - Number(leads(one)));
        if (leader === undefined || follower === undefined) throw new Error('There are not two replicas');
        await made.until(() => follower.leadership.holder() === leader.leadership.holder() && server.watches() === 1);
        return { leader, follower };
      },
      spec: () => Object(server.object(LEASE)?.['spec']),
    };
    try {
      await run(made);
    } finally {
      await Promise.all(running.map((replica) => replica.stop()));
    }
  });
}

function startReplica(server: LeaseServer, identity: string, wall: { now: number }): Replica {
  const connection = server.connect();
  const warnings: string[] = [];
  const stopping = new AbortController();
  const leadership = createLeadership({
    api: connection.api,
    name: LEASE,
    identity,
    leaseDurationMs: DURATION_MS,
    now: () => wall.now,
    log: { info: () => undefined, warn: (_fields, message) => void warnings.push(message) },
  });
  const ended = leadership.start(stopping.signal);
  return {
    leadership,
    connection,
    warnings,
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

const leads = ({ leadership }: Replica): boolean => leadership.leads();
const sleep = async (ms: number): Promise<void> => await new Promise((resolve) => setTimeout(resolve, ms));

describe('createLeadership()', () => {
  scenario('elects one of two replicas that start at the same moment, and both know which', async ({ spec, twoReplicas }) => {
    const { leader, follower } = await twoReplicas();
    expect(leader.leadership.term().aborted).toBe(false);
    expect(follower.leadership.term().aborted).toBe(true);
    expect(spec()['holderIdentity']).toBe(leader.leadership.holder());
    expect([leader, follower].map(({ leadership }) => leadership.transitions())).toEqual([
      spec()['leaseTransitions'],
      spec()['leaseTransitions'],
    ]);
    expect(spec()['leaseDurationSeconds']).toBe(2);
    expect(String(spec()['renewTime'])).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  scenario(
    'elects one of two replicas if there was no Lease, but only after a deleted lease would have expired',
    async ({ spec, until, begin }) => {
      const both = [begin('pod-a'), begin('pod-b')];
      expect(await until(() => both.some(leads))).toBeGreaterThan(DURATION_MS / 2);
      expect(spec()['leaseTransitions']).toBe(0);
    },
    { fresh: true },
  );

  scenario('hands over immediately when the leader stops, and counts the transition', async ({ until, spec, twoReplicas }) => {
    const { leader, follower } = await twoReplicas();
    const term = leader.leadership.term();
    const before = Number(spec()['leaseTransitions']);
    await leader.stop();
    expect([term.aborted, leads(leader)]).toEqual([true, false]);
    expect(await until(() => leads(follower))).toBeLessThan(DURATION_MS / 2);
    expect(Number(spec()['leaseTransitions'])).toBe(before + 1);
    expect(follower.leadership.transitions()).toBe(before + 1);
  });

  scenario('hands over when the leader cannot reach the server, after its term has ended', async ({ until, twoReplicas }) => {
    const { leader, follower } = await twoReplicas();
    const wakes: boolean[] = [];
    leader.leadership.changes(() => void wakes.push(leads(leader)), new AbortController().signal);
    const term = leader.leadership.term();
    leader.connection.network = 'hangs';
    expect(await until(() => leads(follower))).toBeLessThan(1.5 * DURATION_MS);
    expect([term.aborted, wakes]).toEqual([true, [false]]);
    leader.connection.network = 'fine';
    await until(() => leader.leadership.holder() === follower.leadership.holder());
    expect(leader.warnings).toHaveLength(2);
  });

  scenario(
    'has no leader while the server is unreachable, and the same leader as before if nobody took over',
    async ({ server, until, twoReplicas }) => {
      const { leader, follower } = await twoReplicas();
      leader.connection.network = 'refused';
      follower.connection.network = 'refused';
      await until(() => !leads(leader));
      const before = server.requests.length;
      await sleep(DURATION_MS);
      expect(server.requests.length - before).toBeLessThan(20);
      leader.connection.network = 'fine';
      await until(() => leads(leader));
      follower.connection.network = 'fine';
      await sleep(DURATION_MS);
      expect([leads(leader), leads(follower)]).toEqual([true, false]);
    },
  );

  scenario('continues the term when responses to renewals get lost', async ({ server, begin, until, spec }) => {
    const only = begin('pod-a');
    await until(() => leads(only));
    only.connection.network = 'responsesLost';
    await sleep(DURATION_MS / 2.5);
    only.connection.network = 'fine';
    const { requests } = server;
    const from = requests.length;
    await until(() => requests.length > from + 3);
    expect([leads(only), spec()['leaseTransitions']]).toEqual([true, 5]);
  });

  const EDITS: readonly (readonly [string, (server: LeaseServer) => void])[] = [
    ['deletes it', (server) => server.remove(LEASE)],
    ['writes garbage into it', (server) => server.put(LEASE, (before) => ({ ...before, spec: GARBAGE }))],
    ['empties it', (server) => server.put(LEASE, ({ metadata }) => ({ metadata }))],
  ];
  for (const [what, edit] of EDITS) {
    scenario(`elects one leader again when somebody ${what}`, async ({ server, until, spec, twoReplicas }) => {
      const both = Object.values(await twoReplicas());
      const terms = both.map(({ leadership }) => leadership.term());
      edit(server);
      await until(() => terms.every(({ aborted }) => aborted));
      await until(() => both.some(leads));
      const winner = both.find(leads)?.leadership;
      expect(spec()['holderIdentity']).toBe(winner?.holder());
    });
  }

  scenario('keeps fields that others wrote into the Lease', async ({ server, begin, until }) => {
    const only = begin('pod-a');
    await until(() => leads(only));
    server.put(LEASE, (before) => ({ ...before, metadata: { ...before.metadata, labels: { ...before.metadata.labels, team: 'blue' } } }));
    const { requests } = server;
    const from = requests.length;
    await until(() => requests.length > from + 3);
    expect([leads(only), server.object(LEASE)?.metadata.labels?.['team']]).toEqual([true, 'blue']);
  });

  scenario('is not misled by a watch that goes silent', async ({ until, twoReplicas }) => {
    const { leader, follower } = await twoReplicas();
    follower.connection.silent = true;
    await sleep(2 * DURATION_MS);
    expect([leads(leader), leads(follower)]).toEqual([true, false]);
    await leader.stop();
    expect(await until(() => leads(follower))).toBeLessThan(DURATION_MS);
  });

  scenario(
    'sends no requests while another replica leads, and one renewal per quarter of the duration while it leads',
    async ({ server, twoReplicas }) => {
      const { follower } = await twoReplicas();
      await sleep(DURATION_MS / 4);
      const from = server.requests.length;
      await sleep(2 * DURATION_MS);
      const asked = server.requests.slice(from);
      expect(new Set(asked)).toEqual(new Set(['replace']));
      expect(asked.length).toBeLessThanOrEqual(8);
      expect(leads(follower)).toBe(false);
    },
  );

  scenario('does not continue to lead after the machine was suspended, whatever the monotonic clock shows', async ({ begin, until }) => {
    const wall = { now: Date.now() };
    const only = begin('pod-a', wall);
    await until(() => leads(only));
    const term = only.leadership.term();
    wall.now += 3_600_000;
    expect([leads(only), term.aborted]).toEqual([false, true]);
    await until(() => leads(only));
  });

  scenario('waits until the lease of an earlier process with the same name expires, as for any other holder', async ({ begin, until }) => {
    const first = begin('pod-a');
    await until(() => leads(first));
    const second = begin('pod-a');
    await until(() => second.leadership.holder() === 'pod-a');
    await sleep(DURATION_MS / 2);
    expect([leads(first), leads(second)]).toEqual([true, false]);
    first.connection.network = 'hangs';
    await until(() => leads(second));
  });
});
