/** Duration of a plan of a thousand slots: at rest, after an edit of one of them, and with nothing remembered. Runs in memory, since the planner does no I/O. */
import { inspect } from '../src/reconciler/decide/inspect.ts';
import { plan } from '../src/reconciler/decide/plan.ts';
import type { Hardware } from '../src/schema/status/hardware.ts';
import { createWorld } from '../test/support/simulation/world.ts';
import { atMost, median, type Row } from './measure.ts';

const SLOTS = 1000;
const PASSES = 30;
/** A machine on which other programs run: what is free of its memory is another number in each pass. */
const machineAt = (pass: number): Hardware => ({
  source: { kind: 'machine' },
  cpu: { architecture: 'x64', threads: 8 },
  memory: { totalBytes: 1e12, availableBytes: 5e11 - pass * 4096 },
  devices: [],
  programs: {},
});
const DOCUMENT = { provider: 'gguf', backend: 'cpu', model: { default: 'a.gguf' } } as const;

export async function measurePlan(): Promise<readonly Row[]> {
  const times: number[] = [];
  const fresh: number[] = [];
  let count = 0;
  const timed: typeof plan = (wanted, observed, now, steps) => {
    count += 1;
    const desired = { ...wanted, hardware: machineAt(count) };
    const begun = performance.now();
    const made = plan(desired, observed, now, steps);
    const ended = performance.now();
    if (desired.slots.size !== SLOTS) return made;
    times.push(ended - begun);
    plan(desired, observed, now);
    fresh.push(performance.now() - ended);
    return made;
  };
  const world = createWorld({ decide: { plan: timed, inspect }, env: { SVC_PORT_RANGE: '18080-19979', SVC_MEMORY_BUDGET: '100Ti' } });
  world.setModel('a.gguf', 'present');
  for (let index = 0; index < SLOTS; index += 1) world.edit(`s${index}`, DOCUMENT);
  await world.reach(`s${SLOTS - 1}`, 'ready', 120_000);
  const passes = async (before: (pass: number) => void): Promise<number> => {
    times.length = 0;
    while (times.length < PASSES) {
      before(times.length);
      await world.clock.advance(1000);
    }
    return median(times);
  };
  const atRest = await passes(() => world.life().loop.wake());
  const edited = await passes((pass) => world.edit('s500', { ...DOCUMENT, lifecycle: { drainTimeout: `${10 + pass}s` } }));
  await world.life().end();
  const named = `${SLOTS.toLocaleString('en')} slots, median of ${PASSES}`;
  return [
    atMost(`plan of ${named}`, atRest, { limit: 10, unit: 'ms', digits: 1 }),
    atMost(`plan after an edit of one of ${named}`, edited, { limit: 2, unit: 'ms', digits: 1 }),
    atMost(`the same with nothing remembered, ${named}`, median(fresh), { limit: 50, unit: 'ms', digits: 1 }),
  ];
}
