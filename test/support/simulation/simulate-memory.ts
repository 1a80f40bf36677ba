/**
 * A world whose models cannot all fit into memory, with requests to all of them. Nothing fails in it: what is judged is that every slot gets its turn, that no
 * request in flight is ended, that slots are loaded no more often than they are asked for, and that the explanation says who has the memory.
 */
import { plan } from '../../../src/reconciler/decide/plan.ts';
import type { Decision } from '../../../src/reconciler/decide/facts/facts.ts';
import type { LoopDeps } from '../../../src/reconciler/loop.ts';
import { inspect } from '../../../src/reconciler/decide/inspect.ts';
import type { Report } from '../../../src/reconciler/ports.ts';
import type { Caused } from '../../../src/schema/status/slot-status.ts';
import type { SlotName } from '../../../src/schema/words/names.ts';
import { createRandom, type Random } from './seeded-random.ts';
import { createReferee, violation } from './world-referee.ts';
import { createWorld, slotName, type World } from './world.ts';
import type { WorldRequest } from './world-traffic.ts';

type Decide = NonNullable<LoopDeps['decide']>;

const NAMES = ['primary', 'embed', 'coder', 'vision', 'mine'] as const;
const DRAIN_MS = 2000;
const BUSY_MS = 60_000;
const LONGEST_WORK_MS = 4000;
const LONGEST_LOAD_MS = 6000;
const LONGEST_STOP_MS = 500;
/** As `memory-turns.ts` promises: as long as the load, and at least a second. */
const LONGEST_TURN_MS = LONGEST_LOAD_MS + LONGEST_STOP_MS;

interface MemoryScene {
  readonly world: World;
  readonly random: Random;
  readonly names: readonly SlotName[];
  readonly budget: number;
  /** Slots that are loaded ahead of requests at all times. */
  readonly ahead: ReadonlySet<SlotName>;
  /** How many loads of a slot may be in vain: that a server takes more than estimated is known only once it runs. */
  readonly forgiven: number;
}

export interface MemoryOutcome {
  /** Requests that were served, by slot. */
  readonly served: ReadonlyMap<SlotName, number>;
  readonly loads: number;
}

/** Rejects with the first violation. `overshoots`: the server of the first slot takes twice what it was estimated to need. */
export async function simulateMemory(seed: number, decide: Decide = { plan, inspect }, overshoots = false): Promise<MemoryOutcome> {
  const random = createRandom(seed);
  const names = NAMES.slice(0, random.int(2, NAMES.length)).map((name) => slotName(name));
  const sizes = names.map(() => random.int(1, 4) * 500);
  const largest = Math.max(...sizes);
  const all = sizes.reduce((sum, each) => sum + each, 0);
  const least = overshoots ? 2 * largest : largest;
  const budget = random.int(least, Math.max(least, all - 1));
  const loadMs = new Map(names.map((_, index) => [modelOf(index), random.int(10, LONGEST_LOAD_MS)]));
  const world = createWorld({
    env: { SVC_MEMORY_BUDGET: String(budget) },
    readyMs: (model) => loadMs.get(model.replace('/models/', '')) ?? 0,
    losesWake: () => random.chance(0.05),
    behaviour: {
      stopMs: () => [random.int(0, LONGEST_STOP_MS), 0],
      ...(overshoots ? { usedBytes: (slot: string) => (slot === names[0] ? 2 * (sizes[0] ?? 0) : undefined) } : {}),
    },
    decide: {
      inspect: decide.inspect,
      plan(desired, observed, now, steps) {
        const made = decide.plan(desired, observed, now, steps);
        for (const decision of made.decisions.values()) judgeExplanation(decision, made.decisions, budget);
        return made;
      },
    },
  });
  const ahead = new Set(seed % 5 === 4 ? names.filter((_, index) => (seed >> index) % 2 === 1) : []);
  const priorities = random.chance(0.7) ? () => 0 : () => random.int(0, 2);
  names.forEach((name, index) => {
    world.setModel(modelOf(index), 'present', sizes[index]);
    const warm = ahead.has(name) ? ['00:00-24:00'] : [];
    const lifecycle = { drainTimeout: `${DRAIN_MS}ms`, idleTimeout: random.chance(0.8) ? 'never' : '5s', warm };
    world.edit(name, { provider: 'gguf', model: { default: modelOf(index) }, load: 'on-demand', priority: priorities(), lifecycle });
  });
  const outcome = await judge({ world, random, names, budget, ahead, forgiven: overshoots ? 1 : 0 });
  if (overshoots) judgeCorrection(world, names[0], 2 * (sizes[0] ?? 0));
  return outcome;
}

const modelOf = (index: number): string => `model-${index}.gguf`;

async function judge(scene: MemoryScene): Promise<MemoryOutcome> {
  const { world, names } = scene;
  const { clock } = world;
  const referee = createReferee(world, DRAIN_MS);
  for (const life of world.lives()) referee.follow(life);
  const end = clock.now() + BUSY_MS;
  const clients = names.flatMap((name) => Array.from({ length: scene.random.int(1, 3) }, () => createClient(scene, name, end)));
  await clock.until(
    () => {
      referee.look();
      const late = clients.find((client) => client.waitedMs() > patienceMs(scene));
      if (late !== undefined) violation(`A request to "${late.slot}" has not been served for ${late.waitedMs()} ms\n${describe(scene)}`);
      return clock.now() >= end && clients.every((client) => client.isDone());
    },
    BUSY_MS + patienceMs(scene),
  );
  if (!clients.every((client) => client.isDone())) violation(`Requests were not answered\n${describe(scene)}`);
  const requests = clients.flatMap((client) => client.requests());
  for (const { slot, answers, id } of requests) {
    if (answers[0] !== 'served') violation(`Request ${id} to "${slot}" was ${answers[0] ?? 'not answered'}`);
  }
  const served = new Map(names.map((name) => [name, requests.filter(({ slot }) => slot === name).length]));
  const loads = countLoads(scene, served);
  judgeCauses(scene);
  await clock.advance(30_000);
  referee.close();
  return { served, loads };
}

/** Requests wait while every other slot has its turn, twice: a slot may just have missed the last one. */
function patienceMs({ names }: MemoryScene): number {
  return 2 * names.length * (LONGEST_LOAD_MS + LONGEST_TURN_MS + LONGEST_WORK_MS + LONGEST_STOP_MS + 1000);
}

/** Sends the next request some time after the last one was answered, as programs do that wait for answers. */
function createClient({ world, random }: MemoryScene, slot: SlotName, end: number) {
  const { clock } = world;
  const pauseMs = random.pick([0, 20, 300, 2000]);
  const sent: WorldRequest[] = [];
  let since = clock.now();
  const next = (): void => {
    if (clock.now() >= end) return;
    since = clock.now();
    const request = world.life().traffic.ask(slot, random.chance(0.1) ? LONGEST_WORK_MS : random.int(5, 400));
    sent.push(request);
    follow(request);
  };
  const follow = (request: WorldRequest): void => {
    if (request.answers.length > 0) clock.at(clock.now() + pauseMs + 1, next);
    else clock.at(clock.now() + 20, () => follow(request));
  };
  clock.at(clock.now() + random.int(0, 3000), next);
  const isWaiting = (): boolean => sent.at(-1)?.answers.length === 0;
  return {
    slot,
    requests: (): readonly WorldRequest[] => sent,
    isDone: (): boolean => sent.length > 0 && !isWaiting(),
    waitedMs: (): number => (isWaiting() ? clock.now() - since : 0),
  };
}

/** Nothing is loaded that nobody asked for since it was loaded last, except ahead of requests. */
function countLoads({ world, ahead, forgiven }: MemoryScene, served: ReadonlyMap<SlotName, number>): number {
  const entries = world.life().reports.flatMap(({ entries: each }) => each);
  let sum = 0;
  for (const [name, requests] of served) {
    const loads = entries.filter(({ slot, kind, message }) => slot === name && kind === 'action' && message.startsWith('Started ')).length;
    if (loads > requests + forgiven && !ahead.has(name)) violation(`Slot "${name}" was loaded ${loads} times for ${requests} requests`);
    sum += loads;
  }
  return sum;
}

/** Each load is for a request to the slot, and each eviction for a request to another one. */
function judgeCauses({ world, ahead, forgiven }: MemoryScene): void {
  const { reports, traffic } = world.life();
  const causes = reports.flatMap(({ caused = [] }) => caused);
  const askedFor = new Map(traffic.requests.map(({ id, slot }) => [`request:${id}`, slot]));
  for (const { slot, caller, what } of causes) {
    if ((askedFor.get(caller) === slot) !== (what === 'loads')) violation(`"${caller}" is said to have caused ${what} of "${slot}"`);
  }
  const done = reports.flatMap(({ entries }) => entries).filter(({ kind, slot }) => kind === 'action' && !ahead.has(slot));
  const ended = done.filter(({ message, cause }) => message.startsWith('Stopped ') && cause === 'InsufficientMemory');
  const count = (what: Caused['what']): number => causes.filter((each) => each.what === what && !ahead.has(each.slot)).length;
  const began = done.filter(({ message }) => message.startsWith('Started '));
  if (Math.abs(count('loads') - began.length) > forgiven) violation(`${count('loads')} of ${began.length} loads have a cause`);
  // No request is the cause of what the correction of an estimate takes from other slots, all at one moment.
  const uncaused = uncausedEvictions(reports, ahead);
  if (new Set(uncaused).size > forgiven || Math.abs(count('evictions') + uncaused.length - ended.length) > forgiven)
    violation(`${count('evictions')} of ${ended.length} evictions have a cause`);
}

/** When each eviction without a cause began. */
function uncausedEvictions(reports: readonly Report[], ahead: ReadonlySet<SlotName>): readonly number[] {
  const began = new Map<SlotName, number>();
  return reports.flatMap(({ entries, caused = [] }) =>
    entries.flatMap(({ at, kind, slot, cause, message }) => {
      if (kind !== 'action' || cause !== 'InsufficientMemory' || ahead.has(slot)) return [];
      if (message.startsWith('Stopping ')) began.set(slot, at);
      const isCaused = caused.some((each) => each.what === 'evictions' && each.slot === slot);
      return message.startsWith('Stopped ') && !isCaused ? [began.get(slot) ?? at] : [];
    }),
  );
}

/** What the server was measured to use is what admission counts from then on. */
function judgeCorrection(world: World, name: SlotName | undefined, bytes: number): void {
  const memoryBytes = world.slot(name ?? '').memory?.bytes;
  if (memoryBytes !== undefined && memoryBytes < bytes) violation(`Slot "${name}" uses ${bytes} bytes, and ${memoryBytes} are counted`);
}

/** What is said of a slot without memory must add up: those that have it are named, and leave too little for it. */
function judgeExplanation(decision: Decision, all: ReadonlyMap<SlotName, Decision>, budget: number): void {
  const { memory, name } = decision;
  if (memory === undefined || memory.admitted) return;
  const own = memory.candidates.find(({ slot }) => slot === name);
  if (own === undefined || own.admitted) violation(`The explanation of slot "${name}" does not say that it has no memory`);
  for (const { slot, admitted } of memory.candidates) {
    if (all.get(slot)?.memory?.admitted !== admitted) violation(`The explanation of slot "${name}" says something wrong of slot "${slot}"`);
  }
  // Otherwise a reader sees that there is room and does not learn why the slot waits.
  const lacks = memory.neededBytes + memory.aheadBytes + memory.othersBytes > budget;
  const isKept = memory.keptFor !== undefined && all.get(memory.keptFor)?.memory?.admitted === false;
  if (lacks === isKept) violation(`The explanation of slot "${name}" does not say what it waits for`);
  const bytes = memory.candidates.filter(({ admitted }) => admitted).reduce((sum, each) => sum + each.bytes, 0);
  if (bytes > budget) violation(`The explanation of slot "${name}" gives away ${bytes} bytes of ${budget}`);
}

function describe({ world, names }: MemoryScene): string {
  return names.map((name) => world.slot(name).explain(world.clock.now())).join('\n');
}
