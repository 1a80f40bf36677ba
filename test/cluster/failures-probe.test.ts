import { test } from '@jest/globals';
import { createClusterController } from '../support/cluster-controller.ts';
import { createClusterNamespace } from '../support/cluster-namespace.ts';
import { demoSlot } from '../support/cluster.ts';
import { pause } from '../support/service.ts';
import { untilAtRest } from '../support/slot-objects.ts';

test('probe', async () => {
  const space = await createClusterNamespace('probe');
  const a = await createClusterController({ namespace: space.name, identity: 'gateway-a', environment: { SVC_LEASE_DURATION: '3s' } });
  const b = await createClusterController({ namespace: space.name, identity: 'gateway-b', environment: { SVC_LEASE_DURATION: '3s' } });
  await a.start();
  if (process.env['TWO'] !== undefined) await b.start();
  await space.apply(demoSlot('second', 'demo-owl', '  replicas: 3\n'));
  await space.untilReady(['second']);
  await untilAtRest(space.name, new Map([['second', 3]]));
  process.stdout.write(`NS ${space.name}\n`);
  for (const replicas of [2, 3, 1, 2]) {
    const begun = performance.now();
    await space.patch('second', { replicas });
    await pause(300);
    await untilAtRest(space.name, new Map([['second', replicas]]), 120_000);
    process.stdout.write(`${replicas}: ${Math.round(performance.now() - begun)} ms\n`);
  }
  for (const enabled of [false, true]) {
    const begun = performance.now();
    await space.patch('second', { enabled });
    await pause(300);
    await untilAtRest(space.name, new Map([['second', enabled ? 2 : 0]]), 120_000);
    process.stdout.write(`${enabled}: ${Math.round(performance.now() - begun)} ms\n`);
  }
  await a.dispose();
  await b.dispose();
  await space.dispose();
}, 400_000);
