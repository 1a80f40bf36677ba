/**
 * Two machines with this service on a network of their own: they find each other by multicast DNS, one serves slots of the other over TLS, and the other one is swapped,
 * killed and given another certificate meanwhile.
 */
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { svcctl, type Ran } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { makeCertificate, type Certificate } from '../support/https-door.ts';
import { startRequestLoop } from '../support/request-loop.ts';
import { connectHosts, describeWithNetwork, untilListening, type Network, type NetworkHost } from '../support/require/require-network.ts';
import { chatText, condition, isAnswering, pause, startService, type Service, type SlotView } from '../support/service.ts';

const DOOR_CHILD = path.join(import.meta.dirname, '../support/network/door-child.ts');
const DOOR_PORT = 8443;
/** The slot of the laptop for the slot `primary` of the other machine. */
const REMOTE = 'gpu-box-primary';
const { 'demo-fox': FOX, 'demo-owl': OWL } = DEMO_SENTENCES;
/** `SVC_TEST_SWAPS=100` takes two minutes. */
const swaps = Number(process.env['SVC_TEST_SWAPS'] ?? 10);

interface StatusThere {
  readonly state: string;
  readonly model: string;
  readonly ready: boolean;
  readonly in_flight: number;
}

describeWithNetwork('Two machines with this service, on one network,', () => {
  let network: Network;
  let directory = '';
  let [gpuBox, laptop]: NetworkHost[] = [];
  let there: Service;
  let here: Service;
  let door: ChildProcess;
  let [certificate, renewed]: Certificate[] = [];
  let token = '';

  const known = <Value>(value: Value | undefined): Value => {
    if (value === undefined) throw new Error('not made');
    return value;
  };
  const publicUrl = (): string => `https://${known(gpuBox).address}:${DOOR_PORT}`;
  const openDoor = async (shown: Certificate | undefined): Promise<void> => {
    const base = known(shown).certFile.replace(/\.pem$/, '');
    door = await untilListening(known(gpuBox).spawn([DOOR_CHILD, there.url, base, String(DOOR_PORT)]));
  };
  const closeDoor = async (): Promise<void> => {
    const ended = once(door, 'close');
    door.kill('SIGKILL');
    await ended;
  };

  /** What everybody may read there. */
  const untilThere = async (name: string, holds: (slot: StatusThere) => boolean, timeoutMs = 60_000): Promise<void> =>
    await eventually(
      `"${name}" there`,
      async () => {
        const { slots } = JSON.parse(await (await fetch(`${there.url}/api/status`)).text());
        const found = slots.find((slot: { readonly name: string }) => slot.name === name);
        return found !== undefined && holds(found);
      },
      timeoutMs,
    );

  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'svc-hosts-'));
    [certificate, renewed] = await Promise.all(['first', 'second'].map(async (name) => await makeCertificate(directory, name)));
    network = await connectHosts('gpu-box', 'laptop');
    [gpuBox, laptop] = network.hosts;
    const environment = { SVC_MDNS: '1', SVC_AUTH_ENABLED: '1', SVC_PUBLIC_URL: publicUrl() };
    there = await startService({ runtime: 'process', host: known(gpuBox), environment });
    await there.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    here = await startService({ runtime: 'process', host: known(laptop), environment: { SVC_MDNS: '1' } });
    await openDoor(certificate);
    await untilThere('primary', ({ ready }) => ready);
  }, 180_000);
  afterAll(async () => {
    try {
      await Promise.all([here?.dispose(), there?.dispose()]);
    } finally {
      await network?.dispose();
      await rm(directory, { recursive: true, force: true });
    }
  }, 60_000);

  const peer = async (service: Service, args: readonly string[], input = ''): Promise<Ran> => {
    const start = known(service === there ? gpuBox : laptop).spawn;
    return await svcctl(['peer', ...args], { input, env: service.environment, start });
  };
  const add = async (...more: readonly string[]): Promise<Ran> =>
    await peer(here, ['add', 'gpu-box', '--credential-file', '-', ...more], `${token}\n`);
  const ask = async (model: string): Promise<Response> => await here.chat({ model });
  const because = (reason: string) => (slot: SlotView | undefined) => condition(slot, 'Reconciling')?.reason === reason;
  const remoteFile = async (): Promise<string> => await readFile(path.join(here.configDir, `slots/${REMOTE}.toml`), 'utf8');

  test('each finds the other by its name: one with its public URL, one with its address', async () => {
    const found = async (service: Service): Promise<unknown> => JSON.parse((await peer(service, ['list', '-o', 'json'])).out).peers;
    const peerAt = (name: string, url: string) => ({ name, url, version: expect.any(String), announced: true, slots: [] });
    expect(await found(here)).toContainEqual(peerAt('gpu-box', publicUrl()));
    expect(await found(there)).toContainEqual(peerAt('laptop', `http://${known(laptop).address}:${new URL(here.url).port}`));
  }, 60_000);

  test('"trust" there and "add" here make its slot one of this machine, if the certificate is the one that "trust" shows', async () => {
    const trusted = await peer(there, ['trust', 'laptop']);
    expect(trusted).toMatchObject({ code: 0, err: expect.stringContaining(`--fingerprint ${known(certificate).fingerprint}`) });
    token = trusted.out.trim();
    const refused = await add();
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(known(certificate).fingerprint)]);
    expect(await add('--fingerprint', known(certificate).fingerprint)).toMatchObject({ code: 0, out: `slot/${REMOTE} written\n` });
    await here.until(REMOTE, 'ready', isAnswering);
    for (const model of [REMOTE, 'gpu-box/primary']) expect(await chatText(await ask(model))).toBe(FOX);
  }, 60_000);

  test('streams come from there, and one that its client leaves ends there', async () => {
    const client = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const messages = [{ role: 'user', content: 'Hi' }] as const;
    const whole: string[] = [];
    const short = await client.chat.completions.create({ model: REMOTE, messages: [...messages], stream: true });
    for await (const chunk of short) whole.push(chunk.choices[0]?.delta.content ?? '');
    expect(whole.join('').trim()).toBe(FOX);
    expect(whole.length).toBeGreaterThan(3);

    await there.save('clock', 'backend = "cpu"\n[model]\ndefault = "demo-clock"\nparallel = 2\n');
    await untilThere('clock', ({ ready }) => ready);
    expect(await add('--fingerprint', known(certificate).fingerprint, '--slots', 'clock')).toMatchObject({ code: 0 });
    await here.until('gpu-box-clock', 'ready', isAnswering);
    const endless = async () => await client.chat.completions.create({ model: 'gpu-box-clock', messages: [...messages], stream: true });
    const kept = await endless();
    let end = 'none';
    const reading = (async () => {
      for await (const chunk of kept) end = chunk.choices[0]?.finish_reason ?? end;
    })();
    for await (const _chunk of await endless()) {
      await untilThere('clock', ({ in_flight }) => in_flight === 2);
      break;
    }
    // Where a client that leaves is not noticed, its stream is given up later, as one that nobody reads.
    await untilThere('clock', ({ in_flight }) => in_flight === 1, 10_000);
    // The one that began first would end first.
    expect(end).toBe('none');
    kept.controller.abort();
    await reading;
    await untilThere('clock', ({ state }) => state !== 'serving');
    await Promise.all([there.remove('clock'), here.remove('gpu-box-clock')]);
  }, 90_000);

  test(
    `no request of four clients is lost while the model there is swapped ${swaps} times`,
    async () => {
      const loop = startRequestLoop(async () => {
        const answer = await ask(REMOTE);
        if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
        return await chatText(answer);
      }, 4);
      for (let swap = 0; swap < swaps; swap += 1) {
        const model = swap % 2 === 0 ? 'demo-owl' : 'demo-fox';
        await there.save('primary', `backend = "cpu"\n[model]\ndefault = "${model}"\n`);
        await untilThere('primary', (slot) => slot.model === model && slot.ready);
        await pause(100);
      }
      await loop.end();
      expect(loop.failures).toEqual([]);
      expect([...loop.answers].toSorted()).toEqual([FOX, OWL].toSorted());
    },
    60_000 + swaps * 6000,
  );

  test('when the other machine dies, the fallback answers from the first request on, until that machine is back', async () => {
    await here.save('second', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-owl"\n');
    await here.until('second', 'ready', isAnswering);
    await here.save(REMOTE, `${await remoteFile()}\n[fallback]\nto = ["second"]\nwhen = ["loading > 0s", "upstream.failed"]\n`);
    await here.until(REMOTE, 'the fallback', (slot) => condition(slot, 'SpecValid')?.message.includes('fall back to "second"') === true);
    const answers: { readonly sent: number; readonly came: number; readonly by: string }[] = [];
    const loop = startRequestLoop(async () => {
      const sent = performance.now();
      const answer = await ask(REMOTE);
      await answer.text();
      if (answer.status !== 200) throw new Error(`status ${answer.status}`);
      const by = answer.headers.get('x-svc-slot') ?? '';
      answers.push({ sent, came: performance.now(), by });
      return by;
    }, 4);
    const since = (time: number) => answers.filter(({ sent }) => sent >= time);
    await eventually('answers from there', () => answers.length > 8);
    await Promise.all([there.kill('SIGKILL'), closeDoor()]);
    const killed = performance.now();
    await here.until(REMOTE, 'away', because('RemoteUnreachable'));
    await eventually('answers of the fallback', () => since(killed).length > 8);
    const restarted = performance.now();
    await there.start();
    await openDoor(certificate);
    await eventually('answers from there again', () => since(restarted).some(({ by }) => by === REMOTE), 60_000);
    await loop.end();
    expect(loop.failures).toEqual([]);
    expect(new Set(answers.filter(({ came }) => came < killed).map(({ by }) => by))).toContain(REMOTE);
    const between = since(killed).filter(({ came }) => came < restarted);
    expect(new Set(between.map(({ by }) => by))).toEqual(new Set(['second']));
    const [first] = between.toSorted((one, other) => one.came - other.came);
    process.stderr.write(`The fallback answered ${Math.round(known(first).came - killed)} ms after the other machine had died\n`);
    expect((await here.until(REMOTE, 'ready', isAnswering)).status.restarts).toBe(0);
  }, 180_000);

  test('a certificate that changes is refused with its fingerprint, and requests wait until it is added', async () => {
    await here.save(REMOTE, (await remoteFile()).replace(/\n\[fallback\][^]*/, ''));
    await closeDoor();
    await openDoor(renewed);
    const slot = await here.until(REMOTE, 'not trusted', because('RemoteUntrusted'));
    expect(condition(slot, 'Reconciling')?.message).toContain(known(renewed).fingerprint);
    const waiting = ask(REMOTE);
    await eventually('a request that waits', async () => {
      const { slots } = JSON.parse(await (await fetch(`${here.url}/api/status`)).text());
      return slots.some(({ name, parked }: { readonly name: string; readonly parked: number }) => name === REMOTE && parked === 1);
    });
    const again = await add();
    expect([again.code, again.err]).toEqual([1, expect.stringContaining(known(renewed).fingerprint)]);
    expect(await add('--fingerprint', known(renewed).fingerprint)).toMatchObject({ code: 0 });
    expect((await waiting).status).toBe(200);
  }, 90_000);

  test('slots that lead to each other are refused before the request goes round', async () => {
    const remote = (url: string, model: string, more = ''): string =>
      `provider = "remote"\n[model]\ndefault = "${model}"\n[remote]\nurl = "${url}"\nprivate = true\n${more}`;
    const secrets = `credential_file = "${here.configDir}/keys/gpu-box"\nfingerprint = "${known(renewed).fingerprint}"\n`;
    await there.save('circle', remote(`http://${known(laptop).address}:${new URL(here.url).port}`, 'round'));
    await here.save('round', remote(publicUrl(), 'circle', secrets));
    await untilThere('circle', ({ ready }) => ready);
    await here.until('round', 'ready', isAnswering);
    const answer = await ask('round');
    expect([answer.status, await answer.json()]).toMatchObject([508, { error: { code: 'request.loop' } }]);
  }, 90_000);
});
