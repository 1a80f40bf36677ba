/** Usage that is kept in memory, counted by the real recorder. */
import { sumUsage, type UsageRow } from '../../../src/usage/decide/usage-rows.ts';
import { createUsageRecorder } from '../../../src/usage/usage-recorder.ts';

export function createInMemoryUsage(wallNow: () => number): ReturnType<typeof createUsageRecorder> {
  const rows: UsageRow[] = [];
  return createUsageRecorder({
    database: {
      write: async (added) => {
        rows.push(...added);
        return { ok: true, value: undefined };
      },
      read: async ({ from, to, by }) => ({
        ok: true,
        value: sumUsage(
          rows.filter(({ hour }) => hour >= from && hour < to),
          by,
        ),
      }),
      prune: async () => ({ ok: true, value: undefined }),
      close: async () => undefined,
    },
    wallNow,
    now: () => performance.now(),
    factsOf: () => ({ model: 'fox' }),
    log: { warn: () => undefined },
  });
}
