/** A rule watches one controller from its start to its end, and says when something happens that never may. */
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
