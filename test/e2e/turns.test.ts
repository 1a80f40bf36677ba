/**
 * One caller floods a slot with 500 requests, another one asks now and then: the real service, its real llama-server, one request at a time. What is judged
 * counts answers and turns instead of seconds (docs/limits.md, "Turns").
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { judgeTurns } from '../support/memory/judge-turns.ts';
import { FIVE_SLOTS, textOfSlot, writeSizedModels } from '../support/memory/sized-models.ts';
import type { SentRequest } from '../support/memory/slot-clients.ts';
import { describeWithPodman } from '../support/require/require-podman.ts';
import { pause, startService, type Service } from '../support/service.ts';

const MIB = 2 ** 20;
/** Not enough for both. */
const BUDGET = 600 * MIB;
const FLOOD = 500;
/** The request that the server computes, one turn of the other caller, and one that ends in the same millisecond. */
const MOST_BEFORE = 3;
const SLOTS = FIVE_SLOTS.filter(({ name }) => name === 'whale' || name === 'drum');

// The real llama-server comes with the images that the other suites need.
describeWithPodman('A caller who floods a slot', () => {
  let service: Service;
  let flooder: string;
  let patient: string;
  let admin: string;
  beforeAll(async () => {
    const path = `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}`;
    const environment = {
      SVC_AUTH_ENABLED: '1',
      SVC_PROXY_SECRET: 'a-secret-of-the-proxy',
      SVC_PARK_LIMIT: '1000',
      SVC_PARK_TIMEOUT: '600s',
    };
    service = await startService({ runtime: 'process', environment: { ...environment, PATH: path, SVC_MEMORY_BUDGET: String(BUDGET) } });
    await writeSizedModels(service.modelsDir);
    for (const slot of SLOTS) await service.save(slot.name, `${textOfSlot(slot)}[limits]\nmax_in_flight = 1\nmax_queue = 1000\n`);
    [flooder, patient, admin] = [await newToken('flooder'), await newToken('patient'), await newToken('admin', 'admin')];
    for (const { name } of SLOTS)
      await eventually(`"${name}" answers`, async () => (await ask(patient, name)).problem === undefined, 60_000);
  }, 240_000);
  afterAll(async () => await service?.dispose(), 60_000);

  const newToken = async (label: string, scope = 'v1-only'): Promise<string> => {
    const { code, out } = await svcctl(['token', 'create', '--label', label, '--scope', scope], { env: service.environment });
    expect(code).toBe(0);
    return out.trim();
  };

  async function ask(token: string, slot: string, sent: SentRequest[] = [], signal?: AbortSignal): Promise<SentRequest> {
    const request: SentRequest = { slot, sentAt: Date.now(), answeredAt: undefined, problem: undefined };
    sent.push(request);
    const answer = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      signal: signal ?? null,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: slot, max_tokens: 12, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    const text = await answer.text();
    request.problem = answer.status === 200 ? undefined : `It was answered with ${answer.status}: ${text.slice(0, 200)}`;
    request.answeredAt = Date.now();
    return request;
  }

  const answered = (sent: readonly SentRequest[]): number => sent.filter(({ answeredAt }) => answeredAt !== undefined).length;

  /** Calls `meanwhile` while 500 requests wait, then cancels those that still do. */
  async function flood(sent: SentRequest[], meanwhile: () => Promise<void>): Promise<void> {
    const end = new AbortController();
    const flooding = Array.from({ length: FLOOD }, async () => await ask(flooder, 'whale', sent, end.signal));
    const ended = Promise.allSettled(flooding);
    await eventually('the flood is served', () => answered(sent) > 0, 120_000);
    await meanwhile();
    const left = FLOOD - answered(sent);
    end.abort();
    await ended;
    expect(left).toBeGreaterThan(0);
  }

  test('delays another one by a turn, not by all that it has sent', async () => {
    const sent: SentRequest[] = [];
    const asked: SentRequest[] = [];
    await flood(sent, async () => {
      for (let count = 0; count < 20; count += 1) {
        await ask(patient, 'whale', asked);
        await pause(100);
      }
    });
    expect([...sent, ...asked].flatMap(({ problem }) => problem ?? [])).toEqual([]);
    const ended = await endedRequests();
    const { tokens }: { tokens: { id: string; label: string }[] } = JSON.parse(await read('/api/auth/tokens'));
    const callerOf = (label: string): string => `token:${tokens.find((token) => token.label === label)?.id}`;
    const ofFlood = ended.filter(({ caller, status }) => caller === callerOf('flooder') && status === 200);
    const before = ended
      .filter(({ caller, slot }) => caller === callerOf('patient') && slot === 'whale')
      .slice(0, asked.length)
      .map(({ at, seconds }) => ofFlood.filter((other) => other.at > at - seconds * 1000 && other.at < at).length);
    process.stdout.write(`  answers of the flood while each of ${before.length} requests waited: at most ${Math.max(...before)}\n`);
    expect(before).toHaveLength(asked.length);
    expect(before.filter((count) => count > MOST_BEFORE)).toEqual([]);
  }, 600_000);

  test('whose model needs the memory of the other one delays it by at most two turns', async () => {
    const sent: SentRequest[] = [];
    const asked: SentRequest[] = [];
    await flood(sent, async () => {
      for (let count = 0; count < 4; count += 1) {
        await ask(patient, 'drum', asked);
        // So that the other slot has its turn in between.
        const served = answered(sent);
        await eventually('the flood is served again', () => answered(sent) > served, 120_000);
      }
    });
    const found = (await Promise.all(SLOTS.map(async ({ name }) => await startsOf(name)))).flat();
    const starts = found.filter(({ at }) => at > (sent[0]?.sentAt ?? 0)).toSorted((a, b) => a.at - b.at);
    process.stdout.write(`  ${asked.length} requests beside the flood, ${starts.length} starts\n`);
    expect(starts.length).toBeGreaterThanOrEqual(asked.length);
    expect(judgeTurns([...sent, ...asked], starts)).toEqual([]);
  }, 900_000);

  /** By the service's own clock, the newest first. */
  async function endedRequests() {
    const text = await read('/api/requests?limit=1000');
    const { requests }: { requests: { at: string; caller: string; slot: string; status: number; seconds: number }[] } = JSON.parse(text);
    return requests.map((request) => ({ ...request, at: Date.parse(request.at) }));
  }

  async function read(path: string): Promise<string> {
    const answer = await fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${admin}` } });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text;
  }

  async function startsOf(slot: string) {
    const text = await read(`/api/slots/${slot}/timeline?limit=10000`);
    const { entries }: { entries: { at: string; kind: string; message: string }[] } = JSON.parse(text);
    return entries
      .filter(({ kind, message }) => kind === 'action' && message.startsWith('Started '))
      .map(({ at }) => ({ slot, at: Date.parse(at) }));
  }
});
