/**
 * Servers that can sleep, in some worlds: they refuse to, hang while they do, say that they do and do not, cannot be woken, and wake by themselves. All random
 * numbers are its own. The worlds of small seeds, by which mutants are noticed, and those of the corpus have none.
 */
import type { Endpoint, Provider } from '../../../src/providers/provider.ts';
import { pause } from '../../../src/platform/clock.ts';
import type { WorkloadId } from '../../../src/schema/words/names.ts';
import { createRandom } from './seeded-random.ts';
import { FAKE_PROVIDER } from './world-models.ts';
import type { World } from './world.ts';

export interface Sleepers {
  readonly provider: Pick<Provider, 'health' | 'sleep'> | undefined;
  /** It sleeps, or is about to; but not where a controller before `bornAt` told it to, and it fell asleep later. */
  isAsleep(id: WorkloadId, bornAt: number): boolean;
  /** A server may still fall asleep, though the controller that told it to has ended long ago. */
  areFalling(): boolean;
}

const LEAST_SEED = 10_000;
const NONE: Sleepers = { provider: undefined, isAsleep: () => false, areFalling: () => false };

const FATES = ['works', 'works', 'works', 'refuses', 'hangs', 'hangs and works', 'lies'] as const;
type Fate = (typeof FATES)[number];

export function createSleepers(
  seed: number,
  { world, isChaos }: { readonly world: () => World; readonly isChaos: () => boolean },
): Sleepers {
  const random = createRandom(seed ^ 0x51_ee9);
  if (seed < LEAST_SEED || seed % 5 === 0 || !random.chance(0.5)) return NONE;
  const asleep = new Set<WorkloadId>();
  const falling = new Set<WorkloadId>();
  const told = new Map<WorkloadId, { at: number; until: number }>();
  const frees = random.chance(0.5);
  const fate = (): Fate => (isChaos() ? random.pick(FATES) : 'works');
  const idOf = (endpoint: Endpoint): WorkloadId | undefined => world().runtime.at(endpoint)?.id;
  async function turn(id: WorkloadId, sleeps: boolean, timeoutMs: number, signal: AbortSignal): Promise<string | undefined> {
    const { clock } = world();
    const chosen = fate();
    if (chosen !== 'works') world().deeds.sleepless.add(id);
    if (chosen === 'refuses') return '"POST /sleep" was answered with status 500';
    const at = clock.now();
    if (sleeps) falling.add(id);
    if (sleeps) told.set(id, { at, until: Number.POSITIVE_INFINITY });
    await pause(clock, chosen.startsWith('hangs') ? timeoutMs : random.int(0, 3000), signal);
    falling.delete(id);
    if (sleeps) told.set(id, { at, until: clock.now() });
    const changes = chosen === 'works' || chosen === 'hangs and works';
    if (changes && sleeps) asleep.add(id);
    else if (changes) asleep.delete(id);
    if (isChaos() && random.chance(0.3)) clock.at(clock.now() + random.int(0, 8000), () => asleep.delete(id));
    if (chosen.startsWith('hangs')) return `"POST /sleep" got no answer: No answer within ${timeoutMs} ms`;
    return sleeps && chosen === 'lies' ? '"POST /sleep" succeeded, and "GET /is_sleeping" says that it does not sleep' : undefined;
  }
  const ask =
    (sleeps: boolean): NonNullable<Provider['sleep']>['enter'] =>
    async (endpoint, _io, timeoutMs, signal) => {
      const id = idOf(endpoint);
      return id === undefined ? 'Nothing listens on this port' : await turn(id, sleeps, timeoutMs, signal);
    };
  return {
    areFalling: () => falling.size > 0,
    isAsleep(id, bornAt) {
      const { at = 0, until = 0 } = told.get(id) ?? {};
      return (asleep.has(id) || falling.has(id)) && !(at < bornAt && until >= bornAt);
    },
    provider: {
      async health(endpoint, ...asked) {
        const health = await FAKE_PROVIDER.health(endpoint, ...asked);
        const id = idOf(endpoint);
        return health.kind === 'passing' && id !== undefined && asleep.has(id) ? { kind: 'asleep', message: 'The server sleeps' } : health;
      },
      sleep: {
        appliesTo: () => true,
        ...(frees ? { hostBytes: (_spec, sizeBytes) => Math.floor(sizeBytes / 2) } : {}),
        enter: ask(true),
        leave: ask(false),
      },
    },
  };
}
