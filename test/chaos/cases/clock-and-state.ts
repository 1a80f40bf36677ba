/** Cases in which the wall clock jumps and the state directory disappears. */
import { existsSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../../toolboxes/demo/demo-models.ts';
import { isAnswering, pause, shareEngine } from '../../support/service.ts';
import { scaled, slotOf, type ChaosWorld } from '../support/chaos-world.ts';
import { startLoad } from '../support/load.ts';
import { reportCase } from '../support/report-case.ts';

const BOTH = Object.values(DEMO_SENTENCES);
const CASE_MS = 600_000;
/** Each is the distance from the real time: a day back, a day ahead, small steps as a time server makes them, and back to the real time. */
const STEPS_S = [-86_400, 86_400, -7200, 7200, -60, 60, 0] as const;

/** `setClock` sets how many seconds the service's wall clock is ahead of the real time. */
export function clockSteps(world: () => ChaosWorld, setClock: (seconds: number) => Promise<void>): void {
  test(
    'steps of the wall clock change nothing but timestamps',
    async () => {
      const { service, runtime, settled, signal, replaced } = world();
      const times = scaled(STEPS_S.length);
      const load = startLoad(service, { slots: ['primary'], sentences: BOTH });
      for (const [turn, seconds] of STEPS_S.slice(-times).entries()) {
        await setClock(seconds);
        const model = turn % 2 === 0 ? 'demo-owl' : 'demo-fox';
        await service.save('primary', slotOf(model));
        await service.until('primary', model, (slot) => isAnswering(slot) && slot?.status.model === model);
        // The server of the other model has ended.
        await settled(['primary']);
        await replaced('primary', await signal('primary', 'SIGKILL'));
        await settled(['primary']);
      }
      const score = await load.end();
      await settled(['primary']);
      expect(reportCase({ runtime, name: 'steps of the wall clock, each with an edit and a kill', times }, score)).toEqual([]);
      expect(score.disconnected).toBe(0);
      const startedAt = performance.now();
      await service.kill('SIGTERM');
      expect(performance.now() - startedAt).toBeLessThan(60_000);
      await service.start();
      await service.save('primary', slotOf('demo-fox'));
      await settled(['primary']);
    },
    CASE_MS,
  );
}

export function movedState(world: () => ChaosWorld): void {
  test(
    'a state directory that is moved away costs no request and leaves no server behind',
    async () => {
      const { service, runtime, settled } = world();
      const stateDir = path.join(service.dir, 'state');
      const times = scaled(2);
      const load = startLoad(service, { slots: ['primary'], sentences: BOTH });
      for (let turn = 0; turn < times; turn += 1) {
        await rename(stateDir, `${stateDir}-${turn}`);
        await pause(1000);
        await service.kill('SIGKILL');
        // The directory may exist again already; only the engine would have to be fetched from the network.
        if (runtime === 'process' && !existsSync(path.join(stateDir, 'engine'))) await shareEngine(stateDir);
        await service.start();
        await settled(['primary']);
        await service.save('primary', slotOf(turn % 2 === 0 ? 'demo-owl' : 'demo-fox'));
        await settled(['primary']);
      }
      const score = await load.end();
      expect(reportCase({ runtime, name: 'the state directory moved away, and the controller killed', times }, score)).toEqual([]);
    },
    CASE_MS,
  );
}

/** Where libfaketime reads by how much it changes the time. */
export async function writeClock(file: string, seconds: number): Promise<void> {
  await writeFile(`${file}~`, `${seconds >= 0 ? '+' : ''}${seconds}\n`);
  await rename(`${file}~`, file);
}
