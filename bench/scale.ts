/**
 * `npm run bench scale`: what 100 to 10,000 slots with several replicas cost, as tables in Markdown for `docs/cluster/gateways.md`. Runs against the API server of the
 * tests; with `KUBECONFIG` against the one it names, with up to 2,000 slots. Settings: `SVC_BENCH_SLOTS="100 1000"`, `SVC_BENCH_REPLICAS=2`,
 * `SVC_BENCH_STREAMS=refused`, `SVC_BENCH_PASSES=skip`, `SVC_BENCH_RESTART` (a program that restarts the real API server), `SVC_BENCH_REST` (seconds).
 */
import { answerForServers } from './cluster-kubelet.ts';
import { whyNoPodAccount } from './cluster-account.ts';
import { whyNoCluster } from './cluster-bed.ts';
import type { Row } from './measure.ts';
import { measureCost, type ReplicaCost } from './scale-cost.ts';
import { openCluster, openDouble } from './scale-ground.ts';
import { measurePasses } from './scale-passes.ts';
import { costLines, passLines } from './scale-tables.ts';

const REPLICAS = Number(process.env['SVC_BENCH_REPLICAS'] ?? 2);

export async function measureScale(): Promise<readonly Row[]> {
  const why = await whyNoPodAccount();
  if (why !== undefined) return [{ what: 'the cost of many slots', figure: why, goal: 'a table', met: undefined }];
  const isReal = process.env['KUBECONFIG'] !== undefined;
  const whyNot = isReal ? await whyNoCluster() : undefined;
  if (whyNot !== undefined) return [{ what: 'the cost of many slots', figure: whyNot, goal: 'a table', met: undefined }];
  const sizes = (process.env['SVC_BENCH_SLOTS'] ?? (isReal ? '100 2000' : '100 1000 2000 5000 10000')).split(' ').map(Number);
  const ground = isReal ? await openCluster() : await openDouble(process.env['SVC_BENCH_STREAMS'] === 'refused' ? 'refused' : 'served');
  const ended = new AbortController();
  await answerForServers(ended.signal);
  const costs: string[] = [];
  const passes: string[] = [];
  try {
    for (const slots of sizes) {
      await ground.populate(slots);
      const measured = await measureCost(ground, {
        slots,
        replicas: REPLICAS,
        // Pods of a real cluster stay pending here, so there is nothing to send requests to.
        ...(isReal || process.env['SVC_BENCH_PASSES'] === 'skip'
          ? {}
          : { during: async (leader) => void passes.push(...passLines(slots, await measurePasses(ground, leader, slots))) }),
      });
      report(slots, measured);
      costs.push(...costLines(slots, measured));
    }
  } finally {
    ended.abort();
    await ground.dispose();
  }
  process.stdout.write(`\n${ground.name}\n\n${costLines.head}\n${costs.join('\n')}\n`);
  if (passes.length > 0) process.stdout.write(`\n${passLines.head}\n${passes.join('\n')}\n`);
  return [];
}

function report(slots: number, measured: readonly ReplicaCost[]): void {
  process.stdout.write(`  ${slots} slots: ${JSON.stringify(measured.map((each) => ({ ...each })))}\n`);
}
