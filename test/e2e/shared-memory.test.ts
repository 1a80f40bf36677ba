/**
 * Five slots whose models cannot all fit, with the real llama-server and requests to all of them. What is judged counts turns and answers instead of seconds.
 * `npm run test:long -- memory` does this for a minute.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { judgeExplanation, type Explanation, type Steady } from '../support/memory/judge-explanation.ts';
import { judgeTurns, type Start } from '../support/memory/judge-turns.ts';
import { estimates, FIVE_SLOTS, textOfSlot, writeSizedModels } from '../support/memory/sized-models.ts';
import { startSlotClients } from '../support/memory/slot-clients.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX } from '../support/require/require-podman.ts';
import { pause, startService, type Service, type SlotView } from '../support/service.ts';

const { SVC_TEST_SECONDS } = process.env;
const SECONDS = Number(SVC_TEST_SECONDS ?? 4);
const MIB = 2 ** 20;
/** Enough for the largest one with one of the small ones beside it, and for half of all. */
const BUDGET = 600 * MIB;
const BETWEEN_LOOKS_MS = 100;

/** The server of this slot takes so much more that it needs twice its estimate. */
const GREEDY = 'dog';
const HELD_MIB = 300;

const withPath = (directory: string) => ({ PATH: `${directory}:${process.env['PATH'] ?? ''}`, SVC_MEMORY_BUDGET: String(BUDGET) });

const RUNTIMES: Readonly<Record<string, () => Promise<Service>>> = {
  process: async () => startService({ runtime: 'process', environment: withPath(await directoryOfLlamaServer()) }),
  // Containers start more slowly, and everything else is the same, so only where there is time.
  ...(SVC_TEST_SECONDS === undefined
    ? {}
    : {
        podman: async () =>
          startService({ runtime: 'podman', toolboxes: GGUF_TOOLBOX, environment: { SVC_MEMORY_BUDGET: String(BUDGET) } }),
      }),
};

for (const [runtime, start] of Object.entries(RUNTIMES)) {
  describeWithPodmanSlots(`Five slots that cannot all have memory, with the runtime "${runtime}",`, () => {
    let service: Service;
    beforeAll(async () => {
      service = await start();
      await saveSlots(service);
    }, 120_000);
    afterAll(() => service.dispose(), 60_000);

    test(
      'all get their turn, lose no request, and their explanations are true',
      async () => {
        const needed = [...(await estimates(service.modelsDir)).values()];
        expect(needed.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(2 * BUDGET);
        const clients = startSlotClients(service, FIVE_SLOTS);
        const { wrong, mostBytes } = await watchShares(service);
        await clients.end();
        const { requests } = clients;
        expect(wrong).toEqual([]);
        const starts = await startsOf(service);
        expect(judgeTurns(requests, starts)).toEqual([]);
        expect(mostBytes).toBeLessThanOrEqual(BUDGET);
        for (const { name } of FIVE_SLOTS) {
          expect(starts.filter(({ slot }) => slot === name).length).toBeGreaterThan(0);
          expect(requests.some(({ slot }) => slot === name)).toBe(true);
        }
        process.stdout.write(
          `  ${runtime}: ${requests.length} requests, ${starts.length} starts, at most ${Math.round(mostBytes / MIB)} MiB used\n`,
        );
      },
      (SECONDS + 240) * 1000,
    );
  });
}

describeWithPodmanSlots('Five slots of which one takes twice what it was estimated to need', () => {
  let service: Service;
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'svc-greedy-'));
    await writeGreedyServer(directory);
    service = await startService({ runtime: 'process', environment: withPath(directory) });
    await saveSlots(service);
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await rm(directory, { recursive: true, force: true });
  }, 60_000);

  test(
    'all get their turn as well, and what was measured counts from then on',
    async () => {
      const estimate = (await estimates(service.modelsDir)).get(GREEDY) ?? 0;
      // Until its memory has been measured, nobody knows of it.
      const clients = startSlotClients(service, FIVE_SLOTS);
      const measured = /needs (\d+) MiB as measured, more than the estimate of (\d+) MiB/;
      let told: readonly string[] = [];
      const isTold = async (): Promise<boolean> => {
        told = measured.exec((await explanationOf(service, GREEDY)).text) ?? told;
        return Number(told[1]) >= (2 * estimate) / MIB;
      };
      await eventually('its explanation says that it needs twice its estimate', isTold, 120_000);
      expect(Number(told[2])).toBe(Math.round(estimate / MIB));
      // What ran beside it when it was measured gives way once.
      await eventually(
        'no more is used than the budget',
        async () => (await usedBytes((await processes(service)).values())) <= BUDGET,
        120_000,
      );
      const begin = Date.now();
      const { wrong, mostBytes } = await watchShares(service);
      await clients.end();
      expect(wrong).toEqual([]);
      expect(clients.requests.flatMap(({ problem }) => problem ?? [])).toEqual([]);
      const starts = (await startsOf(service)).filter(({ at }) => at > begin);
      expect(
        judgeTurns(
          clients.requests.filter(({ sentAt }) => sentAt > begin),
          starts,
        ),
      ).toEqual([]);
      expect(mostBytes).toBeLessThanOrEqual(BUDGET);
      expect(mostBytes).toBeGreaterThan(HELD_MIB * MIB);
    },
    (SECONDS + 360) * 1000,
  );
});

async function saveSlots(service: Service): Promise<void> {
  await writeSizedModels(service.modelsDir);
  for (const slot of FIVE_SLOTS) await service.save(slot.name, textOfSlot(slot));
  // A slot that no pass has seen yet is offline as well, and the gateway does not know it.
  const isAtRest = ({ status }: SlotView): boolean =>
    status.state === 'offline' && status.conditions.every(({ reason }) => reason !== 'NotYetSeen');
  for (const { name } of FIVE_SLOTS) await service.until(name, 'offline', (seen) => seen !== undefined && isAtRest(seen));
}

/** A llama-server that, with the model of one slot, starts another process which takes memory. */
async function writeGreedyServer(directory: string): Promise<void> {
  const server = path.join(await directoryOfLlamaServer(), 'llama-server');
  const holder = `const held = Buffer.alloc(${HELD_MIB} * 2 ** 20, 1); setInterval(() => held, 1000)`;
  const script = [
    '#!/bin/sh',
    `case "$*" in *sized/${GREEDY}.gguf*) '${process.execPath}' -e '${holder}' & ;; esac`,
    `exec '${server}' "$@"`,
    '',
  ];
  await writeFile(path.join(directory, 'llama-server'), script.join('\n'), { mode: 0o755 });
}

const explanationOf = async (service: Service, name: string): Promise<Explanation> =>
  JSON.parse(await (await fetch(`${service.url}/api/slots/${name}/explain`)).text());

/** Looks at every explanation, and at what all servers use, for a while. */
async function watchShares(service: Service) {
  const wrong = new Set<string>();
  let mostBytes = 0;
  for (const end = performance.now() + SECONDS * 1000; performance.now() < end; await pause(BETWEEN_LOOKS_MS)) {
    for (const { name } of FIVE_SLOTS) {
      const before = await processes(service);
      const explanation = await explanationOf(service, name);
      const ending = await unloading(service);
      const after = await processes(service);
      const { running, absent } = steady(before, after);
      // A process that is being stopped has no turn any more, and its slot may wait for the next one already.
      for (const each of judgeExplanation(explanation, { running: new Set([...running].filter((each) => !ending.has(each))), absent }))
        wrong.add(each);
      mostBytes = Math.max(mostBytes, await usedBytes(after.values()));
    }
  }
  for (const { name } of FIVE_SLOTS) {
    const { code, out } = await svcctl(['explain', name], { env: { SVCCTL_SERVER: service.url } });
    if (code !== 0 || !out.startsWith(`Slot "${name}" is `)) wrong.add(`svcctl explain ${name}: ${code} ${out}`);
  }
  return { wrong: [...wrong], mostBytes };
}

async function startsOf(service: Service): Promise<readonly Start[]> {
  const all = FIVE_SLOTS.map(async ({ name }) => {
    const answer = await fetch(`${service.url}/api/slots/${name}/timeline?limit=10000`);
    const { entries }: { entries: { at: string; kind: string; message: string }[] } = JSON.parse(await answer.text());
    const starts = entries.filter(({ kind, message }) => kind === 'action' && message.startsWith('Started '));
    return starts.map(({ at }) => ({ slot: name, at: Date.parse(at) }));
  });
  return (await Promise.all(all)).flat().toSorted((a, b) => a.at - b.at);
}

async function unloading(service: Service): Promise<ReadonlySet<string>> {
  const { slots }: { slots: readonly SlotView[] } = JSON.parse(await (await fetch(`${service.url}/api/slots`)).text());
  return new Set(slots.filter(({ status }) => status.state === 'unloading').map(({ name }) => name));
}

/** The processes that the service has recorded, by slot; none of containers. */
async function processes(service: Service): Promise<ReadonlyMap<string, number>> {
  const directory = path.join(service.dir, 'state', 'run');
  const names = await readdir(directory).catch(() => []);
  const found = names
    .filter((name) => name.endsWith('.json'))
    .map(async (name): Promise<readonly (readonly [string, number])[]> => {
      const text = await readFile(path.join(directory, name), 'utf8').catch(() => '');
      if (text === '') return [];
      const { slot, pid }: { slot: string; pid: number } = JSON.parse(text);
      return [[slot, pid]];
    });
  return new Map((await Promise.all(found)).flat());
}

function steady(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): Steady {
  const names = FIVE_SLOTS.map(({ name }) => name);
  return {
    running: new Set(names.filter((name) => before.has(name) && before.get(name) === after.get(name))),
    absent: new Set(before.size === 0 ? [] : names.filter((name) => !before.has(name) && !after.has(name))),
  };
}

/** What these processes and those that they started have taken, without the files that they map. */
async function usedBytes(pids: Iterable<number>): Promise<number> {
  let sum = 0;
  const left = [...pids];
  for (let pid = left.pop(); pid !== undefined; pid = left.pop()) {
    const text = async (file: string): Promise<string> => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
    sum += 1024 * Number(/^RssAnon:\s+(\d+) kB$/m.exec(await text('status'))?.[1] ?? 0);
    left.push(
      ...(await text(`task/${pid}/children`))
        .split(' ')
        .map(Number)
        .filter((child) => child > 0),
    );
  }
  return sum;
}
