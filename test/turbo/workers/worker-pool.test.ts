import { expect, test } from '@jest/globals';
import { createLender } from '../../../src/turbo/workers/lent-limits.ts';
import { createLocalAccounts } from '../../../src/gateway/traffic/admit-caller.ts';
import { createTraffic } from '../../../src/gateway/traffic/traffic.ts';
import { createBoard } from '../../../src/reconciler/board.ts';
import { parseSettings } from '../../../src/schema/settings/settings.ts';
import { createWorkerPool } from '../../../src/turbo/workers/worker-pool.ts';
import { workloadId } from '../../gateway/support/board-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';

test('workers that cannot start are started again, and neither the start of the service nor a stop waits for them', async () => {
  const parsed = parseSettings({});
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const { settings } = parsed;
  const board = createBoard();
  const now = (): number => performance.now();
  const lines: string[] = [];
  const write = (_fields: unknown, message: string): void => void lines.push(message);
  const log = { debug: write, info: write, warn: write, error: write };
  const starts: number[] = [];
  const metrics = {
    workerStarted: (worker: number) => void starts.push(worker),
    workerReported: () => undefined,
    workerEnded: () => undefined,
  };
  const pool = createWorkerPool({
    count: 2,
    local: createTraffic({ board, now, settings }),
    lender: createLender({ accounts: createLocalAccounts(now), processes: 3, now }),
    board,
    now,
    log,
    metrics,
  });
  await pool.start({ file: '/nonexistent/worker.ts', env: {}, host: '127.0.0.1', port: await freePort(), settings, mostBodyBytes: 1000 });
  expect(lines).toContain('Only 0 of 2 workers have started; the others are started again');
  await eventually('both were started again', () => starts.length >= 4);
  pool.traffic.read();
  expect(await pool.traffic.settle?.(workloadId('w'))).toBe(true);
  await pool.close(100, 0);
  const after = starts.length;
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(starts.length).toBe(after);
});
