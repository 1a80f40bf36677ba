import { describe, expect, test } from '@jest/globals';
import { createLeadership } from '../../../src/cluster/leadership/leadership.ts';
import type { Leadership } from '../../../src/cluster/client/ports.ts';
import { createLeaseServer, type LeaseConnection, type LeaseServer } from '../../support/kube/lease-api.ts';

const LEASE = 'svc-controller';
/** The shortest that can be: takeovers after a crash take as long. */
const DURATION_MS = 2000;
const GARBAGE = { holderIdentity: 'nobody', leaseTransitions: -3, renewTime: 'soon' };
const RELEASED = { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 4 };

interface Replica {
  readonly leadership: Leadership;
  readonly connection: LeaseConnection;
  readonly warnings: string[];
  stop(): Promise<void>;
}

interface Scene {
  readonly server: LeaseServer;
  begin(identity: string, wall?: { now: number }): Replica;
  /** Looks each few milliseconds; never may two lead. Answers how long it took. */
  until(holds: () => boolean): Promise<number>;
  twoReplicas(): Promise<{ leader: Replica; follower: Replica }>;
  spec(): Record<string, unknown>;
}

/** The lease has been given back by an earlier replica, unless it is to be `fresh`. The plays run beside each other, since most of them wait. */
function play(what: string, run: (scene: Scene) => Promise<void>, { fresh = false } = {}): void {
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
        if (leader === undefined || follower === undefined) throw new Error('Two began');
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
  play('makes one of two that begin at the same moment the leader, and both know which', async ({ spec, twoReplicas }) => {
    const { leader, follower } = await twoReplicas();
    expect(leader.leadership.term().aborted).toBe(false);
    expect(follower.leadership.term().aborted).toBe(true);
    expect(spec()['holderIdentity']).toBe(leader.leadership.holder());
    expect(spec()['leaseDurationSeconds']).toBe(2);
    expect(String(spec()['renewTime'])).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  play(
    'makes one of two the leader where there was no lease, after a lease could have run out that somebody deleted',
    async ({ spec, until, begin }) => {
      const both = [begin('pod-a'), begin('pod-b')];
      expect(await until(() => both.some(leads))).toBeGreaterThan(DURATION_MS / 2);
      expect(spec()['leaseTransitions']).toBe(0);
    },
    { fresh: true },
  );

  play('hands over at once when the leader stops, and counts the change', async ({ until, spec, twoReplicas }) => {
    const { leader, follower } = await twoReplicas();
    const term = leader.leadership.term();
    const before = Number(spec()['leaseTransitions']);
    await leader.stop();
    expect([term.aborted, leads(leader)]).toEqual([true, false]);
    expect(await until(() => leads(follower))).toBeLessThan(DURATION_MS / 2);
    expect(Number(spec()['leaseTransitions'])).toBe(before + 1);
  });

  play('hands over when the leader cannot reach the server, which has stopped to lead before', async ({ until, twoReplicas }) => {
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

  play('ends with the server away, and begins again with the same leader when nobody took over', async ({ server, until, twoReplicas }) => {
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
  });

  play('goes on when answers to renewals get lost', async ({ server, begin, until, spec }) => {
    const only = begin('pod-a');
    await until(() => leads(only));
    only.connection.network = 'failingEndpoints';
    await sleep(DURATION_MS / 2.5);
    only.connection.network = 'fine';
    const { requests } = server;
    const from = requests.length;
    await until(() => requests.length > from + 3);
    expect([leads(only), spec()['leaseTransitions']]).toEqual([true, 5]);
  });

  const DEEDS: readonly (readonly [string, (server: LeaseServer) => void])[] = [
    ['deletes it', (server) => server.remove(LEASE)],
    ['writes garbage into it', (server) => server.put(LEASE, (before) => ({ ...before, spec: GARBAGE }))],
    ['empties it', (server) => server.put(LEASE, ({ metadata }) => ({ metadata }))],
  ];
  for (const [what, meddle] of DEEDS) {
    play(`settles on one leader again when somebody ${what}`, async ({ server, until, spec, twoReplicas }) => {
      const both = Object.values(await twoReplicas());
      const terms = both.map(({ leadership }) => leadership.term());
      meddle(server);
      await until(() => terms.every(({ aborted }) => aborted));
      await until(() => both.some(leads));
      const winner = both.find(leads)?.leadership;
      expect(spec()['holderIdentity']).toBe(winner?.holder());
    });
  }

  play('keeps what others wrote into the lease', async ({ server, begin, until }) => {
    const only = begin('pod-a');
    await until(() => leads(only));
    server.put(LEASE, (before) => ({ ...before, metadata: { ...before.metadata, labels: { ...before.metadata.labels, team: 'blue' } } }));
    const { requests } = server;
    const from = requests.length;
    await until(() => requests.length > from + 3);
    expect([leads(only), server.object(LEASE)?.metadata.labels?.['team']]).toEqual([true, 'blue']);
  });

  play('is not taken in by a watch that goes silent', async ({ until, twoReplicas }) => {
    const { leader, follower } = await twoReplicas();
    follower.connection.silent = true;
    await sleep(2 * DURATION_MS);
    expect([leads(leader), leads(follower)]).toEqual([true, false]);
    await leader.stop();
    expect(await until(() => leads(follower))).toBeLessThan(DURATION_MS);
  });

  play(
    'asks for nothing while another one leads, and for one renewal in a quarter of the duration while it leads',
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

  play('does not lead on after the machine slept, whatever the other clock says', async ({ begin, until }) => {
    const wall = { now: Date.now() };
    const only = begin('pod-a', wall);
    await until(() => leads(only));
    const term = only.leadership.term();
    wall.now += 3_600_000;
    expect([leads(only), term.aborted]).toEqual([false, true]);
    await until(() => leads(only));
  });

  play('waits for the lease of an earlier process of the same name like for anybody’s', async ({ begin, until }) => {
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
