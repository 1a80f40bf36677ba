/** What a new user does after `npm start`: chat, stream, embed, change the model in an editor, press Ctrl-C. On the embedded engine, without podman. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OpenAI } from 'openai';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { freePort } from '../support/free-port.ts';
import { ownEnvironment, pause, shareEngine, type SlotView } from '../support/service.ts';
import { startStreamLoop } from '../support/live-cluster/stream-loop.ts';

describe('The first run', () => {
  let dir = '';
  let url = '';
  let child: ChildProcess;
  let output = '';
  let openai: OpenAI;

  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'svc-first-'));
    await shareEngine(path.join(dir, 'state'));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    child = spawn(process.execPath, ['src/cli/svcctl.mjs', 'serve', '--checkout'], {
      env: {
        ...ownEnvironment(),
        // A llama-server on the PATH would take precedence over the embedded engine.
        PATH: path.dirname(process.execPath),
        SVC_LISTEN: `127.0.0.1:${port}`,
        SVC_CONFIG_DIR: path.join(dir, 'config'),
        SVC_STATE_DIR: path.join(dir, 'state'),
        SVC_PORT_RANGE: '30100-30199',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
    await until('the API', async () => (await fetch(`${url}/api/status`)).ok);
  }, 180_000);

  afterAll(async () => {
    child.kill('SIGKILL');
    await rm(dir, { recursive: true, force: true });
  });

  async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + 60_000;
    while (!(await holds().catch(() => false))) {
      if (Date.now() > deadline) throw new Error(`Timed out waiting for ${what}:\n${output}`);
      await pause(25);
    }
  }

  const ask = async () => {
    const answer = await openai.chat.completions.create({ model: 'primary', messages: [{ role: 'user', content: 'Hello' }] });
    return answer.choices[0]?.message.content?.trim();
  };

  test('prints the address of the API, a curl command, and the file to edit', async () => {
    // The API answers before all of it is printed.
    await until('the file to edit', async () => output.includes('primary.toml'));
    expect(output).toContain(url);
    expect(output).toContain('curl ');
  });

  test('declares the five built-in slots; the one for images is off, and says what this machine lacks', async () => {
    const seen = async () => {
      const answer: { slots: readonly SlotView[] } = JSON.parse(await (await fetch(`${url}/api/slots`)).text());
      return new Map(answer.slots.map((slot) => [slot.name, slot.status.conditions.find(({ type }) => type === 'Ready')]));
    };
    await until('the slots', async () => (await seen()).size > 0);
    expect([...(await seen()).keys()].toSorted()).toEqual(['embed', 'img', 'primary', 'stt', 'tts']);
    await until('the reason', async () => (await seen()).get('img')?.reason === 'Disabled');
    const { providers } = JSON.parse(await (await fetch(`${url}/api/providers`)).text());
    const image = providers.find(({ kind }: { kind: string }) => kind === 'image');
    expect(image).toMatchObject({ available: false, reason: expect.stringContaining('install ComfyUI') });
    expect((await seen()).get('img')?.message).toMatch(/^Slot is off: "enabled" is false/);
  }, 60_000);

  test('answers chat right away: a request that arrives while the model is loading waits for it', async () => {
    expect(await ask()).toBe(DEMO_SENTENCES['demo-fox']);
  }, 60_000);

  test('streams, with token usage', async () => {
    const stream = await openai.chat.completions.create({
      model: 'demo-fox',
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let tokens = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      tokens = chunk.usage?.completion_tokens ?? tokens;
    }
    expect(text.trim()).toBe(DEMO_SENTENCES['demo-fox']);
    expect(tokens).toBeGreaterThan(0);
  });

  test('embeds, as numbers and as base64, with the same values', async () => {
    const asNumbers = await openai.embeddings.create({ model: 'embed', input: 'a red fox', encoding_format: 'float' });
    const byDefault = await openai.embeddings.create({ model: 'embed', input: 'a red fox' });
    const [numbers, decoded] = [asNumbers.data[0]?.embedding ?? [], byDefault.data[0]?.embedding ?? []];
    expect(numbers.length).toBe(64);
    expect(decoded.length).toBe(64);
    for (const [index, value] of numbers.entries()) expect(decoded[index]).toBeCloseTo(value, 5);
  }, 60_000);

  test('lists the models by their ids', async () => {
    const ids = (await openai.models.list()).data.map((model) => model.id);
    expect(ids).toEqual(expect.arrayContaining(['demo-fox', 'demo-embed']));
  });

  test('serves the other model after its file is edited, without a failed or cut request', async () => {
    const loop = startStreamLoop({ chat: (body = {}) => post({ messages: [{ role: 'user', content: 'Hello' }], ...body }) }, 2);
    const file = path.join(dir, 'config/slots/primary.toml');
    const text = await readFile(file, 'utf8');
    await writeFile(`${file}.new`, text.replace('default = "demo-fox"', 'default = "demo-owl"'));
    await rename(`${file}.new`, file);
    await until('the text of the other model', async () => loop.score.texts.has(DEMO_SENTENCES['demo-owl']));
    const score = await loop.end();
    expect(score.failures).toEqual([]);
    expect([...score.texts.keys()].sort()).toEqual([DEMO_SENTENCES['demo-fox'], DEMO_SENTENCES['demo-owl']].sort());
    expect(await ask()).toBe(DEMO_SENTENCES['demo-owl']);
  }, 90_000);

  const post = (body: object) =>
    fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

  test('stops everything it started on Ctrl-C', async () => {
    const answer = await (await fetch(`${url}/api/slots`)).text();
    const { slots }: { slots: { name: string; status: { endpoint: string | null } }[] } = JSON.parse(answer);
    // Those for speech are loaded with their first request, and not before.
    expect(slots.map(({ name }) => name)).toEqual(['embed', 'img', 'primary', 'stt', 'tts']);
    const endpoints = slots.flatMap(({ status }) => status.endpoint ?? []);
    expect(endpoints).toHaveLength(2);
    for (const endpoint of endpoints) expect((await fetch(`${endpoint}/health`)).ok).toBe(true);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    for (const endpoint of endpoints) await expect(fetch(`${endpoint}/health`)).rejects.toThrow();
  }, 60_000);
});
