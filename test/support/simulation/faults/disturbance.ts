/** What may go wrong with one call of a port, and how often. A stream of random numbers of its own keeps the other events of a seed as they are. */
import { createRandom } from '../seeded-random.ts';
import type { Clock } from '../../../../src/reconciler/ports.ts';

export type Disturbance =
  /** The answer comes late. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** No answer comes at all. */
  | { readonly kind: 'hang' }
  /** The adapter throws, which none should do. */
  | { readonly kind: 'throw'; readonly message: string }
  | { readonly kind: 'fail'; readonly message: string }
  /** The answer is not the truth. */
  | { readonly kind: 'lie' };

type Kind = Disturbance['kind'];

export type DisturbedPort = 'source' | 'runtime' | 'models' | 'host' | 'logs' | 'apply' | 'stop' | 'pull' | 'probe' | 'records';

/** Returns what goes wrong with this call; undefined if nothing does. */
export type Disturb = (port: DisturbedPort) => Disturbance | undefined;

/** Of 1,000 calls, in a world in which this port is disturbed. */
const RATES: Readonly<Record<DisturbedPort, Partial<Record<Kind, number>>>> = {
  source: { slow: 60, hang: 8, throw: 25, fail: 40, lie: 40 },
  runtime: { slow: 120, hang: 8, throw: 25 },
  models: { slow: 60, hang: 8, throw: 40, lie: 20 },
  host: { slow: 40, hang: 8, throw: 60, lie: 60 },
  logs: { slow: 150, hang: 200, throw: 200 },
  apply: { slow: 150, throw: 150, lie: 120 },
  stop: { slow: 150, throw: 150, fail: 150, lie: 100 },
  pull: { slow: 500, throw: 100, fail: 200 },
  probe: { throw: 60 },
  records: { slow: 200, hang: 100, throw: 200 },
};

const LONGEST_MS: Readonly<Record<DisturbedPort, number>> = {
  source: 4000,
  runtime: 5000,
  models: 4000,
  host: 4000,
  logs: 4000,
  apply: 6000,
  stop: 6000,
  pull: 90_000,
  probe: 0,
  records: 4000,
};

/** Shorter than any limit that an adapter sets itself. */
export function createDisturb(seed: number, isChaos: () => boolean): Disturb {
  const random = createRandom(seed ^ 0x5eed);
  const ports: readonly DisturbedPort[] = ['source', 'runtime', 'models', 'host', 'logs', 'apply', 'stop', 'pull', 'probe', 'records'];
  const disturbed = new Set(ports.filter(() => random.chance(0.3)));
  return (port) => {
    if (!isChaos() || !disturbed.has(port)) return undefined;
    let left = random.int(0, 999);
    for (const kind of ['slow', 'hang', 'throw', 'fail', 'lie'] as const) {
      left -= RATES[port][kind] ?? 0;
      if (left >= 0) continue;
      const message = `The simulation made the port "${port}" fail`;
      if (kind === 'slow') return { kind, ms: random.int(1, LONGEST_MS[port]) };
      return kind === 'throw' || kind === 'fail' ? { kind, message } : { kind };
    }
    return undefined;
  };
}

/** Waits, hangs or throws as the disturbance says; fails and lies are for the caller. */
export async function suffer(clock: Clock, disturbance: Disturbance | undefined): Promise<void> {
  if (disturbance?.kind === 'throw') throw new Error(disturbance.message);
  if (disturbance?.kind === 'hang') await new Promise<never>(() => undefined);
  if (disturbance?.kind === 'slow') await new Promise<void>((resolve) => void clock.at(clock.now() + disturbance.ms, resolve));
}
