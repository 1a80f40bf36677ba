/** Cases in which the controller dies while a new model is judged. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../../toolboxes/demo/demo-models.ts';
import { eventually } from '../../support/eventually.ts';
import { condition, isAnswering, pause } from '../../support/service.ts';
import { scaled, slotOf, type ChaosWorld } from '../support/chaos-world.ts';
import { startLoad } from '../support/load.ts';
import { reportCase } from '../support/report-case.ts';

const FOX = [DEMO_SENTENCES['demo-fox']];
const CASES = 5;
const CASE = {
  request: { messages: [{ role: 'user', content: 'Who jumps?' }], max_tokens: 24 },
  expect: { contains: 'fox' },
  required: true,
};
/** A whole rollout takes about as long on an idle machine, so that each phase is hit. */
const ROLLOUT_MS = 3000;

export function rollouts(world: () => ChaosWorld): void {
  test('kills of the controller while a new model is judged bring the old one back', async () => {
    const { service, runtime, random, settled } = world();
    const times = scaled(100);
    await mkdir(path.join(service.configDir, 'checks'), { recursive: true });
    await writeFile(path.join(service.configDir, 'checks', 'fox.jsonl'), `${JSON.stringify(CASE)}\n`.repeat(CASES));
    const judged = (model: string, priority: number, swap: string) =>
      `${slotOf(model, `priority = ${priority}`)}[lifecycle]\nswap = "${swap}"\n[rollout]\ncheck = "checks/fox.jsonl"\nwatch = "10m"\n`;
    const newest = async (): Promise<{ readonly spec: { readonly priority: number }; readonly outcome: string } | undefined> =>
      JSON.parse(await (await fetch(`${service.url}/api/slots/primary/revisions`)).text()).revisions[0];
    await service.save('primary', judged('demo-fox', times + 1, 'auto'));
    await eventually('the first text serves', async () => {
      const { spec, outcome } = (await newest()) ?? {};
      return spec?.priority === times + 1 && outcome === 'served';
    });
    await settled(['primary']);
    const load = startLoad(service, { slots: ['primary'], sentences: FOX });
    for (let kill = 1; kill <= times; kill += 1) {
      // Each text is another one: the same would not be judged again.
      await service.save('primary', judged('demo-owl', kill, kill % 2 === 0 ? 'auto' : 'drain'));
      await pause(random.integer(ROLLOUT_MS));
      await service.kill('SIGKILL');
      await service.start();
      const text = `rolled back ${kill}`;
      await service.until('primary', text, (slot) => condition(slot, 'Stalled')?.reason === 'RolledBack' && isAnswering(slot), 120_000);
      expect(await newest()).toMatchObject({ spec: { priority: kill }, outcome: 'rolled_back' });
    }
    const score = await load.end();
    await settled(['primary']);
    expect(reportCase({ runtime, name: 'kills of the controller in a rollout', times }, score)).toEqual([]);
  }, 3_600_000);
}
