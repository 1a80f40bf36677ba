/** Duration of one plan of a thousand slots at rest. Runs in memory, since the planner does no I/O. */
import { inspect } from '../src/reconciler/decide/inspect.ts';
import { plan } from '../src/reconciler/decide/plan.ts';
import { createWorld } from '../test/support/simulation/world.ts';
import { atMost, median, type Row } from './measure.ts';

const SLOTS = 1000;
const PASSES = 30;

export async function measurePlan(): Promise<readonly Row[]> {
  const times: number[] = [];
  const timed: typeof plan = (desired, observed, now) => {
    const begun = performance.now();
    const made = plan(desired, observed, now);
    if (desired.slots.size === SLOTS) times.push(performance.now() - begun);
    return made;
  };
  const world = createWorld({ decide: { plan: timed, inspect }, env: { SVC_PORT_RANGE: '18080-19979', SVC_MEMORY_BUDGET: '100Ti' } });
  world.setModel('a.gguf', 'present');
  for (let index = 0; index < SLOTS; index += 1)
    world.edit(`s${index}`, { provider: 'gguf', backend: 'cpu', model: { default: 'a.gguf' } });
  await world.reach(`s${SLOTS - 1}`, 'ready', 120_000);
  times.length = 0;
  while (times.length < PASSES) {
    world.life().loop.wake();
    await world.clock.advance(1000);
  }
  await world.life().end();
  return [atMost(`plan of ${SLOTS.toLocaleString('en')} slots, median of ${times.length}`, median(times), { limit: 10, unit: 'ms' })];
}
