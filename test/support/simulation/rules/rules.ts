/** All rules for one controller. */
import type { Watcher } from '../journal.ts';
import type { Life } from '../world-life.ts';
import type { World } from '../world.ts';
import { judgeAhead } from './ahead.ts';
import { judgeFacts } from './facts.ts';
import { judgeFailures } from './failures.ts';
import { judgeHosts } from './hosts.ts';
import { judgeLeaders } from './leaders.ts';
import { judgeLogs } from './logs.ts';
import { judgePasses } from './passes.ts';
import { judgeRecords } from './records.ts';
import { judgeRepairs } from './repairs.ts';
import { judgeRepeats } from './repeats.ts';
import { judgeRetries } from './retries.ts';
import { judgeSleep } from './sleep.ts';
import { judgeStarts } from './starts.ts';
import { judgeStatuses } from './statuses.ts';
import type { Rule } from './rule.ts';

export const RULES: readonly Rule[] = [
  judgePasses,
  judgeLeaders,
  judgeFacts,
  judgeFailures,
  judgeRecords,
  judgeRepairs,
  judgeRetries,
  judgeRepeats,
  judgeStarts,
  judgeStatuses,
  judgeLogs,
  judgeHosts,
  judgeAhead,
  judgeSleep,
];

export interface Judges {
  /** Returns the first violation so far; undefined if there is none. */
  look(): string | undefined;
}

export function judgeLife(world: World, life: Life, rules: readonly Rule[]): Judges {
  let first: string | undefined;
  const wrong = (message: string): void => void (first ??= message);
  const watchers: readonly Watcher[] = rules.map((rule) => rule({ world, life, wrong }));
  for (const watcher of watchers) life.journal.watchers.add(watcher);
  return {
    look() {
      for (const watcher of watchers) watcher.look?.();
      return first;
    },
  };
}
