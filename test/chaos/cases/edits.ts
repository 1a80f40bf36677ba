/** Cases in which slot files are broken, switched on and off, and come and go in large numbers. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../../toolboxes/demo/demo-models.ts';
import { parseSlotText } from '../../../src/host/slots/decide/parse-slot-text.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { eventually } from '../../support/eventually.ts';
import { condition, pause } from '../../support/service.ts';
import { scaled, slotOf, type ChaosWorld } from '../support/chaos-world.ts';
import { startLoad } from '../support/load.ts';
import type { Random } from '../support/random.ts';
import { reportCase } from '../support/report-case.ts';

const FOX = [DEMO_SENTENCES['demo-fox']];
const CASE_MS = 600_000;
const PRIMARY = SlotName.parse('primary');

export function edits(world: () => ChaosWorld): void {
  test(
    'broken files never replace the last good spec',
    async () => {
      const { service, runtime, random, settled, serverOf } = world();
      const times = scaled(200);
      const good = slotOf('demo-fox');
      const server = await serverOf('primary');
      const load = startLoad(service, { slots: ['primary'], sentences: FOX });
      for (let turn = 0; turn < times; turn += 1) {
        const broken = breakText(good, random);
        // Half of them are written in place, as some editors do.
        if (random.integer(2) === 0) await writeFile(path.join(service.configDir, 'slots', 'primary.toml'), broken);
        else await service.save('primary', broken);
        if (turn % 10 === 0) await service.until('primary', 'refused', (slot) => condition(slot, 'SpecValid')?.status === 'False');
        else await pause(random.integer(60));
      }
      await service.save('primary', good);
      await service.until('primary', 'valid again', (slot) => condition(slot, 'SpecValid')?.status === 'True');
      const score = await load.end();
      await settled(['primary']);
      expect(reportCase({ runtime, name: 'broken slot files', times }, score)).toEqual([]);
      expect([score.cut, score.disconnected]).toEqual([0, 0]);
      expect(await serverOf('primary')).toBe(server);
    },
    CASE_MS,
  );

  test(
    'flips of "enabled" end in the last state that was written',
    async () => {
      const { service, runtime, random, settled } = world();
      const times = scaled(100);
      const load = startLoad(service, { slots: ['primary'], sentences: FOX });
      for (let turn = 0; turn < times; turn += 1) {
        await service.save('primary', slotOf('demo-fox', `enabled = ${turn % 2 === 1}`));
        await pause(random.integer(turn % 10 === 0 ? 2000 : 250));
      }
      await service.save('primary', slotOf('demo-fox'));
      await settled(['primary']);
      const score = await load.end();
      expect(reportCase({ runtime, name: 'flips of "enabled"', times }, score, { refusals: ['503 slot.disabled'] })).toEqual([]);
      expect(score.disconnected).toBe(0);
    },
    CASE_MS,
  );

  test(
    'slots that come and go in large numbers do not disturb the others',
    async () => {
      const { service, runtime, settled } = world();
      const times = scaled(300);
      const names = Array.from({ length: times }, (_, index) => `many-${index}`);
      const known = async (): Promise<number> => {
        const body: { slots: { name: string }[] } = JSON.parse(await (await fetch(`${service.url}/api/status`)).text());
        return body.slots.filter(({ name }) => name.startsWith('many-')).length;
      };
      const load = startLoad(service, { slots: ['primary'], sentences: FOX });
      for (const name of names) await service.save(name, slotOf('demo-fox', 'load = "on-demand"'));
      await eventually('all slots are known', async () => (await known()) === times, 60_000);
      await Promise.all(names.map((name) => service.remove(name)));
      await eventually('no slot is left', async () => (await known()) === 0, 60_000);
      const score = await load.end();
      await settled(['primary']);
      expect(reportCase({ runtime, name: 'slots added and removed', times }, score)).toEqual([]);
      expect([score.cut, score.disconnected]).toEqual([0, 0]);
    },
    CASE_MS,
  );
}

/** Returns a text that no slot may have. Most random changes break a file; those that do not are tried again. */
function breakText(good: string, random: Random): string {
  for (;;) {
    const at = random.integer(good.length);
    const broken = random.pick([
      () => good.slice(0, at),
      () => `${good.slice(0, at)}\u0000${good.slice(at)}`,
      () => good.slice(0, at) + random.pick(['"', '=', '[', ']', '\n', '{', "'''", 'ü']) + good.slice(at),
      () => `${good}unknown_key = ${at}\n`,
      () => good.replace('"cpu"', 'cpu'),
      () => good.replace('demo-fox"', 'demo-fox"\ncontext = "many"'),
      () => good + good,
    ])();
    if (!parseSlotText(PRIMARY, broken, 'primary.toml').ok) return broken;
  }
}
