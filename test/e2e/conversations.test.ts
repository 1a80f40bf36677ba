/** Conversations with three real llama-servers through two gateways: their turns meet the server whose cache has the turns before. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { publish } from '../gateway/support/board-fixture.ts';
import { startGateway, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';
import { CONVERSATIONS, converse, homesOf, newConversations, SERVER_ARGS, type LlamaServer } from '../support/conversations.ts';
import { freePort } from '../support/free-port.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodman } from '../support/require/require-podman.ts';
import { pause } from '../support/service.ts';

interface Running extends LlamaServer {
  readonly port: number;
  readonly process: ChildProcess;
}

describeWithPodman('Conversations with several llama-servers', () => {
  let directory: string;
  let fixtures: readonly GatewayFixture[] = [];
  const started: Running[] = [];
  let ofOne = 0;
  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'svc-conversations-'));
    await writeFile(path.join(directory, 'fox.gguf'), encodeDemoModel('demo-fox'));
    fixtures = await Promise.all([startGateway(), startGateway()]);
  }, 60_000);
  afterAll(async () => {
    await Promise.all([...fixtures.map((fixture) => fixture.close()), ...started.map(stop)]);
    await rm(directory, { recursive: true, force: true });
  }, 60_000);

  const gateways = (): readonly string[] => fixtures.map(({ url }) => url);

  async function start(): Promise<Running> {
    const port = await freePort();
    const program = path.join(await directoryOfLlamaServer(), 'llama-server');
    const args = ['--model', path.join(directory, 'fox.gguf'), '--host', '127.0.0.1', '--port', String(port), ...SERVER_ARGS];
    const server = { name: String(port), url: `http://127.0.0.1:${port}`, port, process: spawn(program, args, { stdio: 'ignore' }) };
    started.push(server);
    for (;;) {
      const health = await fetch(`${server.url}/health`).catch(() => undefined);
      if (health?.status === 200) return server;
      if (server.process.exitCode !== null) throw new Error(`llama-server ended with ${server.process.exitCode}`);
      await pause(50);
    }
  }

  async function stop({ process: child }: Running): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  const offer = (servers: readonly Running[]): readonly Running[] => {
    const targets = servers.map(({ port }) => ({ workload: 'w', port }));
    for (const { board } of fixtures) publish(board, { name: 'primary', targets });
    return servers;
  };

  test('compute their prompts on one server once', async () => {
    const servers = offer([await start()]);
    ofOne = (await converse(newConversations('one', servers), gateways(), servers)).computedTokens;
    expect(ofOne).toBeGreaterThan(0);
  }, 180_000);

  test('compute hardly more on three servers, of which none has more than its share of the load', async () => {
    const servers = offer(await Promise.all([start(), start(), start()]));
    const { atHome, hottest, computedTokens, loads } = await converse(newConversations('all', servers), gateways(), servers);
    process.stdout.write(`${JSON.stringify({ atHome, hottest, loads, computedTokens, ofOne })}\n`);
    expect(atHome).toBeGreaterThanOrEqual(0.9);
    expect(hottest).toBeLessThanOrEqual(1.25);
    expect(computedTokens / ofOne).toBeLessThanOrEqual(1.15);
  }, 240_000);

  test('move only with the server that is killed or added', async () => {
    const conversations = newConversations('moves', started.slice(1));
    const [, gone, ...kept] = started;
    if (gone === undefined) throw new Error('No server');
    const before = await homesOf(conversations, gateways(), started.slice(1));
    await stop(gone);
    offer(kept);
    const after = await homesOf(conversations, gateways(), kept);
    for (const [index, home] of before.entries()) if (home !== gone.name) expect(after[index]).toBe(home);
    const added = await start();
    const last = await homesOf(conversations, gateways(), offer([...kept, added]));
    const moved = last.filter((home, index) => home !== after[index]);
    const lost = before.filter((home) => home === gone.name).length;
    process.stdout.write(`moved with the server that was killed ${lost}, that was added ${moved.length}\n`);
    expect(new Set(moved)).toEqual(new Set([added.name]));
    expect(moved.length).toBeLessThan(CONVERSATIONS / 2);
  }, 240_000);
});
