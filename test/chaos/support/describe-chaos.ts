/** All cases of one runtime, in one service that lives as long as the suite. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, test } from '@jest/globals';
import { clockSteps, movedState, writeClock } from '../cases/clock-and-state.ts';
import { edits } from '../cases/edits.ts';
import { rollouts } from '../cases/rollouts.ts';
import { swapsAndKills } from '../cases/swaps-and-kills.ts';
import { openChaosWorld, type ChaosRuntime, type ChaosWorld } from './chaos-world.ts';

const FAKETIME = process.env['SVC_TEST_FAKETIME'] ?? '';

export function chaosCases(runtime: ChaosRuntime): void {
  let world: ChaosWorld | undefined;
  let clockDir = '';
  const opened = (): ChaosWorld => {
    if (world === undefined) throw new Error('The service did not start');
    return world;
  };
  const clockFile = (): string => path.join(clockDir, 'offset');

  beforeAll(async () => {
    clockDir = await mkdtemp(path.join(tmpdir(), 'svc-clock-'));
    await writeClock(clockFile(), 0);
    world = await openChaosWorld(runtime, FAKETIME === '' ? {} : fakeClock(clockFile()));
  }, 180_000);

  beforeEach(() => opened().reset(), 180_000);

  afterAll(async () => {
    await world?.service.dispose();
    await rm(clockDir, { recursive: true, force: true });
  }, 120_000);

  swapsAndKills(opened);
  edits(opened);
  rollouts(opened);
  if (FAKETIME === '') test.skip('steps of the wall clock (skipped: SVC_TEST_FAKETIME does not name libfaketime)', () => undefined);
  else clockSteps(opened, (seconds) => writeClock(clockFile(), seconds));
  movedState(opened);
}

/** libfaketime changes the wall clock of one program: the monotonic clock stays, as it does when a real clock is set. */
function fakeClock(file: string): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: FAKETIME,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  };
}
