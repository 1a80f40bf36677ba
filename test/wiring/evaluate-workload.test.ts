/** Answers to cases come from the workload that is judged, and say nothing of its failed requests, which `rollout.watch` counts. */
import { createServer } from 'node:http';
import { expect, test } from '@jest/globals';
import { createTraffic } from '../../src/gateway/traffic/traffic.ts';
import { createBoard } from '../../src/reconciler/board.ts';
import { ModelId } from '../../src/schema/words/names.ts';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { createEvaluation } from '../../src/wiring/evaluate-workload.ts';
import { boardSlot, publish, slotName, workloadId } from '../gateway/support/board-fixture.ts';
import { PROVIDER } from '../gateway/support/gateway-provider.ts';

const NEW = workloadId('new');
const CASE = { request: { messages: [{ role: 'user', content: 'Who?' }] }, expect: { contains: 'owl' } };

async function listen(status: number): Promise<{ readonly port: number; readonly asked: () => number; close(): Promise<void> }> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    request.resume().on('end', () => response.writeHead(status, { 'content-type': 'application/json' }).end('{"error":"broken"}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port: typeof address === 'object' && address !== null ? address.port : 0, asked: () => asked, close };
}

test('a server that fails a case is asked, misses it, and has not failed a request of a client', async () => {
  const parsed = parseSettings({});
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const { settings } = parsed;
  const [judged, serving] = [await listen(500), await listen(500)];
  const board = createBoard();
  const now = (): number => performance.now();
  const traffic = createTraffic({ board, now, settings });
  const sketch = { name: 'primary', targets: [{ workload: 'old', port: serving.port }] };
  publish(board, sketch);
  const { spec } = boardSlot(sketch);
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const evaluate = createEvaluation({
    settings,
    providers: { gguf: { ...PROVIDER, capabilities: () => ['chat'] } },
    log,
    board,
    traffic,
    now,
  });
  const endpoints = [{ host: '127.0.0.1', port: judged.port }];
  const model = { id: ModelId.parse('new.gguf'), hostPath: '', sizeBytes: 0 };
  try {
    const report = await evaluate(
      { slot: slotName('primary'), workload: NEW, endpoints, spec, model },
      [CASE],
      new AbortController().signal,
    );
    expect(report).toMatchObject({ cases: 1, passed: 0, misses: [{ case: 1 }] });
    expect(serving.asked()).toBe(0);
    expect(judged.asked()).toBeGreaterThan(0);
    expect(traffic.read().workloads.get(NEW)).toMatchObject({ inFlight: 0, ended: 1, failed: 0 });
  } finally {
    await Promise.all([judged.close(), serving.close()]);
  }
});
