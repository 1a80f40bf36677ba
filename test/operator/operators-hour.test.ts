/**
 * What a platform engineer does to an installation within an hour, under load, one after the other: edits, a drain, a killed leader, an API server that is
 * away, an upgrade, a definition that is deleted and put back. SVC_TEST_PHASE_S: how long each of them lasts (default: 60). Run it with
 * "npm run test:long -- operator".
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { crdDelete, crdInstall, describeWithClusterTool, startApiServer, stopApiServer } from '../support/live-cluster/cluster-tool.ts';
import { demoSlot, install, isReady, type Installation } from '../support/live-cluster/cluster.ts';
import { eventually, gatewaysOf, slotPods, startClients, type Loop } from '../support/live-cluster/cluster-replicas.ts';
import { pause } from '../support/service.ts';

const PHASE_MS = Number(process.env['SVC_TEST_PHASE_S'] ?? 60) * 1000;
const SLOTS = ['primary', 'two', 'three', 'four', 'five', 'six'];
const OTHERS = SLOTS.slice(1);
/** Length of a stream; a server with one thread makes some hundred tokens in a second. */
const TOKENS = 100;
const BURST_CLIENTS = 16;
const MOST_LOG_LINES = 500;
const DEFINITION = 'crds/slotspecs.inference.svc.dev.yaml';
const TIMEOUT_MS = 300_000 + 2 * PHASE_MS;

describeWithClusterTool('An operator’s hour', () => {
  let svc: Installation;
  /** The log of each gateway, by its name, as long as it was last seen. */
  const logs = new Map<string, string>();
  let answered = 0;

  beforeAll(async () => {
    svc = await install({ namespace: 'svc-hour', values: 'replicas: 2\n' });
    await svc.apply(manifest());
    await allReady();
  }, 400_000);
  afterAll(async () => {
    await startApiServer();
    await crdInstall(DEFINITION);
    if (svc !== undefined) await svc.kubectl(['uncordon', await node()]);
    await svc?.dispose();
  }, 240_000);

  const manifest = (): string =>
    demoSlot('primary', 'demo-clock', '  replicas: 2\n') + OTHERS.map((name) => demoSlot(name, 'demo-clock')).join('');
  const allReady = async (): Promise<void> => {
    for (const each of SLOTS) await svc.until(each, 'ready', isReady, 240_000);
  };
  const node = async (): Promise<string> => svc.kubectl(['get', 'nodes', '--output', 'jsonpath={.items[0].metadata.name}']);
  const patch = async (name: string, spec: object): Promise<unknown> =>
    svc.kubectl(['patch', `slot/${name}`, '--type=merge', '--patch', JSON.stringify({ spec })]);
  const keepLogs = async (): Promise<void> => {
    for (const each of await svc.gateways()) logs.set(each, await svc.kubectl(['logs', each]).catch(() => logs.get(each) ?? ''));
  };
  const load = (url = svc.url, clients = 3): readonly Loop[] => [
    startClients(url, 'primary', clients, TOKENS),
    ...OTHERS.map((name) => startClients(url, name, 1, TOKENS)),
  ];
  /** Ends the load. Returns the requests that were lost. */
  const endOf = async (loops: readonly Loop[]): Promise<readonly string[]> => {
    const lost = (await Promise.all(loops.map((each) => each.end()))).flat();
    answered += loops.reduce((sum, each) => sum + each.done(), 0);
    return lost;
  };
  const during = async (what: () => Promise<unknown>, url?: string, clients?: number): Promise<readonly string[]> => {
    const loops = load(url, clients);
    await pause(1000);
    await what();
    return endOf(loops);
  };

  test(
    'loses no request while slots are edited',
    async () => {
      const lost = await during(async () => {
        const until = Date.now() + PHASE_MS;
        for (let round = 0; round === 0 || Date.now() < until; round += 1) {
          const name = SLOTS[round % SLOTS.length] ?? 'primary';
          // Each edit replaces the pods.
          await patch(name, { model: { args: ['--threads', '1', '--threads-batch', String(1 + (round % 2))] }, priority: round % 5 });
          await svc.until(name, 'ready with the edit', isReady, 120_000);
        }
      });
      expect(lost).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    'loses no request while the node is drained and takes pods again',
    async () => {
      const lost = await during(async () => {
        await svc.kubectl([
          'drain',
          await node(),
          '--pod-selector=app.kubernetes.io/managed-by=svc',
          '--ignore-daemonsets',
          '--delete-emptydir-data',
          '--timeout=120s',
        ]);
        await pause(PHASE_MS / 4);
        await svc.kubectl(['uncordon', await node()]);
        await allReady();
      });
      expect(lost).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    'loses no request at the other gateway while the leader is killed',
    async () => {
      await keepLogs();
      const [leader, other] = await gatewaysOf(svc);
      if (leader?.leads !== true || other === undefined) throw new Error('There are not two gateways with a leader');
      const lost = await during(async () => {
        await svc.kubectl(['delete', 'pod', leader.name, '--grace-period=0', '--force']);
        await eventually(
          'the other one leads',
          async () => svc.leader(),
          (name) => name === other.name,
        );
        await patch('two', { priority: 7 });
        await svc.until('two', 'up to date', isReady);
        await pause(PHASE_MS / 2);
      }, other.url);
      expect(lost).toEqual([]);
      await eventually(
        'two gateways are there',
        async () => gatewaysOf(svc),
        (gateways) => gateways.length === 2,
        120_000,
      );
    },
    TIMEOUT_MS,
  );

  test(
    'loses no request while the API server is away',
    async () => {
      const lost = await during(async () => {
        await stopApiServer();
        await pause(PHASE_MS);
        await startApiServer();
        await eventually(
          'a gateway leads',
          async () => svc.leader(),
          (name) => name !== '',
        );
      });
      expect(lost).toEqual([]);
      await allReady();
    },
    TIMEOUT_MS,
  );

  test(
    'loses no request of a burst while the gateways are replaced by an upgrade',
    async () => {
      await keepLogs();
      const before = (await slotPods(svc, 'primary')).map(({ uid }) => uid).toSorted();
      const lost = await during(
        async () => {
          await svc.kubectl(['rollout', 'restart', 'deployment/svc']);
          await svc.kubectl(['rollout', 'status', 'deployment/svc', '--timeout=180s']);
          await pause(PHASE_MS / 4);
        },
        svc.url,
        BURST_CLIENTS,
      );
      expect(lost).toEqual([]);
      // The upgrade of a gateway restarts no model.
      expect((await slotPods(svc, 'primary')).map(({ uid }) => uid).toSorted()).toEqual(before);
    },
    TIMEOUT_MS,
  );

  test(
    'serves again once a deleted definition and its slots are put back, with few lines in the logs',
    async () => {
      const definition = await readFile(DEFINITION, 'utf8');
      expect(definition).toContain('slotspecs.inference.svc.dev');
      await crdDelete('slotspecs.inference.svc.dev');
      await pause(PHASE_MS / 2);
      await crdInstall(DEFINITION);
      await eventually(
        'slots can be created',
        async () => svc.apply(manifest()),
        () => true,
        120_000,
      );
      await allReady();
      expect(await during(async () => pause(PHASE_MS / 4))).toEqual([]);
      await keepLogs();
      const lines = [...logs].map(([name, log]) => [name, log.trimEnd().split('\n').length] as const);
      const count = lines.reduce((sum, [, each]) => sum + each, 0);
      process.stdout.write(`${answered} requests answered, ${count} lines in the logs: ${JSON.stringify(lines)}\n`);
      const common = new Map<string, number>();
      for (const line of [...logs.values()].join('\n').split('\n')) {
        const shape = line.replace(/^\S+ /, '').replace(/\d+/g, 'N').slice(0, 120);
        common.set(shape, (common.get(shape) ?? 0) + 1);
      }
      process.stdout.write(
        [...common]
          .toSorted(([, one], [, other]) => other - one)
          .slice(0, 15)
          .map(([shape, times]) => `${times} × ${shape}\n`)
          .join(''),
      );
      expect(count).toBeLessThanOrEqual(MOST_LOG_LINES);
    },
    TIMEOUT_MS,
  );
});
