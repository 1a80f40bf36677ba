/** Models that are named instead of copied into the store, from a Hub on this machine and from other tools, each served by the real llama-server. */
import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES, encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { startSvcctl, svcctl } from '../cli/run-svcctl.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { layOutHuggingFace, layOutLlamaCpp, layOutLmStudio, layOutOllama } from '../support/models/foreign-layouts.ts';
import { encodeProjector, IMAGE_TOKENS, imageUrl } from '../support/models/tiny-projector.ts';
import { describeWithPodman } from '../support/require/require-podman.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

const slotOf = (model: string) => `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\n`;
const fox = encodeDemoModel('demo-fox');
const owl = encodeDemoModel('demo-owl');
/** The embedding length of the demo models. */
const projector = encodeProjector(64);
/** With zeros behind it, so that it takes a while. */
const slow = bufferFile(Buffer.concat([fox, Buffer.alloc(24_000_000)]));
const commit = 'c'.repeat(40);
/** Commands start slowly on a busy machine. */
const PATIENCE_MS = 40_000;

describeWithPodman('llama-server with a model that is named', () => {
  let hub: FakeHub;
  let service: Service;
  beforeAll(async () => {
    const see = new Map([
      ['see-Q4_K_M.gguf', bufferFile(Buffer.from(owl))],
      ['mmproj-F16.gguf', bufferFile(Buffer.from(projector))],
    ]);
    hub = await startFakeHub({
      repos: [
        { name: 'o/slow', license: 'apache-2.0', commit, files: new Map([['m-Q4_K_M.gguf', slow]]) },
        { name: 'o/see', license: 'apache-2.0', commit, files: see },
      ],
    });
    const environment = {
      PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}`,
      HF_ENDPOINT: hub.url,
      HF_HOME: '/nonexistent',
      SVC_PULL_CONNECTIONS: '2',
    };
    service = await startService({ runtime: 'process', environment });
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await hub.close();
  }, 60_000);

  async function ask(model: string, ...parts: readonly object[]): Promise<{ readonly text: string; readonly promptTokens: number }> {
    const answer = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...parts] }] }),
    });
    const body: { choices: { message: { content: string } }[]; usage: { prompt_tokens: number } } = JSON.parse(await answer.text());
    return { text: body.choices[0]?.message.content ?? '', promptTokens: body.usage.prompt_tokens };
  }
  const seesImages = async (model: string): Promise<boolean> => {
    const [plain, seen] = [await ask(model), await ask(model, { type: 'image_url', image_url: { url: imageUrl() } })];
    return seen.promptTokens - plain.promptTokens >= IMAGE_TOKENS;
  };

  test('pulls it for two slots with one download, and shows how far it is wherever one looks', async () => {
    // Slow enough for the commands to start and to show what they see, also on a busy machine.
    hub.bytesPerSecond = 300_000;
    const server = ['--server', service.url];
    const watch = follow(startSvcctl(['get', 'slots', '--watch', ...server]));
    const listening = new AbortController();
    const heard = readEvents(service.url, listening.signal);
    await eventually('the list is watched', () => watch.text().includes('No slots found'), PATIENCE_MS);
    for (const name of ['primary', 'second']) await service.save(name, slotOf('hf:o/slow'));
    for (const name of ['primary', 'second']) await service.until(name, 'pulling', (seen) => seen?.status.state === 'pulling');
    const load = follow(startSvcctl(['slot', 'load', 'second', '--wait', ...server]));
    const progress = String.raw`[\d.]+ (?:[KM]i)?B of 23\.2 MiB \(\d+ %\), [\d.]+ [KM]iB/s, \d+s left`;
    const linesOf = (name: string): ReadonlySet<string> =>
      new Set(watch.text().match(new RegExp(`^${name} +pulling .* Pulling m-Q4_K_M\\.gguf, ${progress}$`, 'gm')));
    const shown = (): boolean =>
      linesOf('primary').size > 1 &&
      linesOf('second').size > 1 &&
      new Set(load.text().match(new RegExp(`^second: pulling m-Q4_K_M\\.gguf, ${progress}$`, 'gm'))).size > 1;
    await eventually('both commands show the progress', shown, PATIENCE_MS);
    hub.bytesPerSecond = undefined;
    expect(await load.ended).toBe(0);
    expect(load.text()).toContain('slot/second ready\n');
    await eventually('the list shows that it answers', () => /^second +(ready|serving|idle) +yes/m.test(watch.text()), PATIENCE_MS);
    for (const name of ['primary', 'second']) {
      await service.until(name, 'ready', isAnswering);
      expect((await ask(name)).text).toBe(DEMO_SENTENCES['demo-fox']);
    }
    watch.child.kill();
    listening.abort();
    expect((await heard).filter((message) => message.startsWith('Pull'))).toEqual([
      expect.stringMatching(/^Pulling model "hf:o\/slow"/),
      'Pulled model "hf:o/slow"',
    ]);
    expect(hub.sentBytes()).toBe(slow.sizeBytes);
  }, 150_000);

  test('pulls the projector along', async () => {
    hub.bytesPerSecond = undefined;
    await service.save('third', slotOf('hf:o/see'));
    await service.until('third', 'ready', isAnswering);
    expect((await ask('third')).text).toBe(DEMO_SENTENCES['demo-owl']);
    expect(await seesImages('third')).toBe(true);
  }, 60_000);

  test('takes it from Ollama, LM Studio, llama.cpp and Hugging Face, and nothing that is only half there', async () => {
    const home = path.join(service.dir, 'home');
    await layOutOllama(home, { model: fox, projector });
    await layOutLmStudio(home, { model: owl, projector });
    await layOutLlamaCpp(home, { model: fox });
    await layOutHuggingFace(home, { model: owl, projector });
    const env = { HOME: home, XDG_CACHE_HOME: '', HF_HOME: '' };
    const imported = await svcctl(['model', 'import', '--store', service.modelsDir], { env });
    const expected = {
      'ollama/see/1b/see-1b.gguf': ['demo-fox', true],
      'lm-studio/publisher/See-GGUF/see-Q4_K_M/see-Q4_K_M.gguf': ['demo-owl', true],
      'llama.cpp/owner_repo_say-Q4_K_M/owner_repo_say-Q4_K_M.gguf': ['demo-fox', false],
      'huggingface/owner/See-GGUF/see-Q4_K_M/see-Q4_K_M.gguf': ['demo-owl', true],
    } as const;
    expect(imported.code).toBe(0);
    expect([...imported.out.matchAll(/^model\/(\S+) imported/gm)].map(([, id]) => id)).toEqual(Object.keys(expected));
    const slots = Object.entries(expected).map(([id, [sentence, sees]], index) => ({ name: `import${index}`, id, sentence, sees }));
    for (const { name, id } of slots) await service.save(name, slotOf(id));
    for (const { name, sentence, sees } of slots) {
      await service.until(name, 'ready', isAnswering);
      expect((await ask(name)).text).toBe(DEMO_SENTENCES[sentence]);
      if (sees) expect(await seesImages(name)).toBe(true);
    }
  }, 90_000);
});

/** What a command has printed so far, and with which code it ends. */
function follow(child: ChildProcess): { readonly child: ChildProcess; text(): string; readonly ended: Promise<number | null> } {
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return { child, text: () => text, ended: new Promise((resolve) => void child.once('close', resolve)) };
}

/** The messages of all events until the signal aborts. */
async function readEvents(url: string, signal: AbortSignal): Promise<readonly string[]> {
  let text = '';
  try {
    const answer = await fetch(`${url}/api/events`, { signal });
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? []) text += decoder.decode(chunk, { stream: true });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '{}']) => {
    const event: { readonly message?: string } = JSON.parse(data);
    return event.message ?? '';
  });
}
