/** A rule watches one controller from its start to its end, and says when something happens that never may. */
import { isSameValue } from '../../../../src/schema/words/same-value.ts';
import type { DesiredSlot } from '../../../../src/reconciler/ports.ts';
import type { Watcher } from '../journal.ts';
import type { Life } from '../world-life.ts';
import type { World } from '../world.ts';

export interface RuleContext {
  readonly world: World;
  readonly life: Life;
  /** Reports a violation. The first one counts. */
  readonly wrong: (message: string) => void;
}

export type Rule = (context: RuleContext) => Watcher;

/** The shortest delay after so many failures in a row: 1 s, doubled each time, up to 5 minutes. */
export function delayMs(failures: number): number {
  return failures <= 0 ? 0 : Math.min(1000 * 2 ** (failures - 1), 300_000);
}

type Declared = Pick<DesiredSlot, 'uid' | 'generation' | 'spec'>;

/** Whether what was counted of a slot counts on: nothing was edited since, or nothing but its number of replicas. */
export function countsOn(before: Declared | undefined, after: Declared): boolean {
  if (before === undefined || before.uid !== after.uid) return false;
  // The backend of a slot that names none follows from the machine.
  const own = after.spec.backendGiven ? after : { ...after, spec: { ...after.spec, backend: before.spec.backend } };
  return before.generation === own.generation ? isSameValue(before.spec, own.spec) : isOnlyScaled(before, own);
}

export function isOnlyScaled(before: Declared, after: Declared): boolean {
  const { replicas } = after.spec.cluster;
  const scaled = { ...before.spec, cluster: { ...before.spec.cluster, replicas } };
  return before.generation !== after.generation && before.spec.cluster.replicas !== replicas && isSameValue(scaled, after.spec);
}
