/** Cases in which models are swapped, and servers and controllers die. */
import { expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../../toolboxes/demo/demo-models.ts';
import { eventually } from '../../support/eventually.ts';
import { isAnswering, pause } from '../../support/service.ts';
import { scaled, slotOf, type ChaosWorld } from '../support/chaos-world.ts';
import { startLoad } from '../support/load.ts';
import { reportCase } from '../support/report-case.ts';

const BOTH = Object.values(DEMO_SENTENCES);
const FOX = [DEMO_SENTENCES['demo-fox']];

/** A crash loop is five crashes in ten minutes, so no slot is killed more often than three times. */
const KILLS_PER_SLOT = 3;
const CASE_MS = 900_000;

export function swapsAndKills(world: () => ChaosWorld): void {
  test(
    'swaps of the model lose no request',
    async () => {
      const { service, runtime, random, settled } = world();
      const times = scaled(100);
      const load = startLoad(service, { slots: ['primary'], sentences: BOTH });
      for (let turn = 1; turn <= times; turn += 1) {
        const model = turn % 2 === 1 ? 'demo-owl' : 'demo-fox';
        await service.save('primary', slotOf(model));
        // One in four is edited again before it is ready.
        if (random.integer(4) === 0) await pause(random.integer(300));
        else await service.until('primary', model, (slot) => isAnswering(slot) && slot?.status.model === model);
      }
      const score = await load.end();
      await settled(['primary']);
      expect(reportCase({ runtime, name: 'swaps of the model', times }, score)).toEqual([]);
      expect([score.cut, score.disconnected]).toEqual([0, 0]);
    },
    CASE_MS,
  );

  test(
    'kills of servers lose no request whose answer has not begun',
    async () => {
      const { service, runtime, random, settled, signal } = world();
      const kills = scaled(30);
      const slots = Array.from({ length: Math.ceil(kills / KILLS_PER_SLOT) }, (_, index) => (index === 0 ? 'primary' : `slot-${index}`));
      for (const slot of slots) await service.save(slot, slotOf('demo-fox'));
      await settled(slots);
      const load = startLoad(service, { slots, sentences: FOX });
      for (let kill = 0; kill < kills; kill += 1) {
        const slot = slots[kill % slots.length] ?? 'primary';
        await service.until(slot, 'answering', isAnswering, 120_000);
        await pause(random.integer(200));
        await signal(slot, 'SIGKILL');
      }
      for (const slot of slots) await service.until(slot, 'answering', isAnswering, 120_000);
      const score = await load.end();
      await settled(slots);
      expect(reportCase({ runtime, name: 'kills of a server', times: kills }, score)).toEqual([]);
      expect(score.disconnected).toBe(0);
      for (const slot of slots.slice(1)) await service.remove(slot);
      await settled(['primary']);
    },
    CASE_MS,
  );

  test(
    'kills of the controller leave servers running and lose only the connections that died with it',
    async () => {
      const { service, runtime, random, settled, serverOf } = world();
      const times = scaled(15);
      const before = await serverOf('primary');
      const load = startLoad(service, { slots: ['primary'], sentences: FOX });
      for (let kill = 0; kill < times; kill += 1) {
        await pause(random.integer(500));
        await service.kill('SIGKILL');
        await service.start();
        const answered = load.score.answered;
        await eventually('requests are answered again', () => load.score.answered > answered + 4, 60_000);
      }
      const score = await load.end();
      await settled(['primary']);
      expect(reportCase({ runtime, name: 'kills of the controller', times }, score)).toEqual([]);
      expect(await serverOf('primary')).toBe(before);
    },
    CASE_MS,
  );

  test(
    'a frozen server is replaced, and the requests that it holds are answered',
    async () => {
      const { service, runtime, random, settled, signal, replaced } = world();
      const times = scaled(3);
      const load = startLoad(service, { slots: ['primary'], sentences: FOX });
      for (let turn = 0; turn < times; turn += 1) {
        await pause(random.integer(500));
        await replaced('primary', await signal('primary', 'SIGSTOP'));
        await settled(['primary']);
      }
      const score = await load.end();
      expect(reportCase({ runtime, name: 'a server frozen (SIGSTOP)', times }, score)).toEqual([]);
      expect(score.disconnected).toBe(0);
    },
    CASE_MS,
  );
}
