/** What is true of a host: its files and servers, whatever a controller knows of them, and what its controllers were told of its slots. */
import { observedProcess } from '../../../../src/host/process/decide/process-facts.ts';
import { rewriteSlotText } from '../../../../src/host/slots/decide/edit-slot.ts';
import type { DesiredSlot, DesiredState, ObservedWorkload, RuntimeTraits, Wake } from '../../../../src/reconciler/ports.ts';
import { fail, ok } from '../../../../src/schema/words/failure.ts';
import { Revision, SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import type { SlotStatus } from '../../../../src/schema/status/slot-status.ts';
import type { SlotDocument, SlotSpec } from '../../../../src/schema/slot/slot-spec.ts';
import { isSameValue } from '../../../../src/schema/words/same-value.ts';
import type { InMemoryRuntime } from '../../in-memory/in-memory-runtime.ts';
import type { Random } from '../seeded-random.ts';
import { listen } from '../world-models.ts';
import { createMachine, STATE, type MachineOptions, type MachineProcess } from './world-machine.ts';

export type EarlierStatuses = ReadonlyMap<SlotName, SlotStatus>;
export type HostWorld = ReturnType<typeof createHostWorld>;

const SLOTS = '/config/slots';
const TRAITS: RuntimeTraits = { kind: 'process', images: false, network: 'shared', modelsTarget: undefined };

/** A slot from its declaration to its removal. */
interface Declared {
  /** Since the one that controllers were told last. */
  specs: SlotSpec[];
  /** What the controllers were told, and must know of from then on. */
  told: { readonly generation: number; readonly isStored: boolean } | undefined;
}

export function createHostWorld(options: MachineOptions) {
  const { clock } = options;
  const machine = createMachine(options);
  const declared = new Map<SlotName, Declared>();
  const described = new Map<string, DesiredSlot>();
  const wakes = new Set<Wake>();
  const begun = new Map<string, number>();
  machine.disk.put(`${SLOTS}/.here`, '');

  const idOf = (server: MachineProcess): WorkloadId => WorkloadId.parse(`${server.mark?.record.name}:${server.pid}:${server.start}`);
  const find = (id: WorkloadId): MachineProcess | undefined => machine.servers().find((each) => idOf(each) === id);
  const workloads = new WeakMap<MachineProcess, ObservedWorkload>();
  const workloadOf = (server: MachineProcess): ObservedWorkload | undefined => {
    const phase = server.stoppedBy === undefined ? 'running' : 'stopping';
    const known = workloads.get(server);
    if (known?.phase === phase) return known;
    const said = server.mark;
    if (said === undefined) return undefined;
    const { name, slot, revision, generation, startedAt, argv, program, port } = said.record;
    const { pid, start, env } = server;
    begun.set(idOf(server), server.begunAt);
    const workload = observedProcess(
      {
        name,
        slot: SlotName.parse(slot),
        revision: Revision.parse(revision),
        generation,
        startedAt,
        argv: [argv[0], ...argv.slice(1)],
        program,
        port,
        pid,
        start,
        bootId: '',
        env: {},
      },
      { phase, argv: server.argv, env },
    );
    workloads.set(server, workload);
    return workload;
  };
  const list = (): readonly ObservedWorkload[] => machine.servers().flatMap((server) => workloadOf(server) ?? []);
  const fileOf = (name: SlotName): string => `${SLOTS}/${name}.toml`;
  const storedGeneration = (name: SlotName): number => {
    const texts = ['.json', '.json~'].map((end) => machine.disk.safeText(`${STATE}/slots/${name}${end}`) ?? '');
    return Math.max(0, ...texts.map((text) => Number(/"generation": (\d+)[^]*\}\n$/.exec(text)?.[1] ?? 0)));
  };
  /** The statuses on the disk that are whole. */
  const recorded = (): EarlierStatuses => {
    const files = machine.disk.list(`${STATE}/status`).filter((file) => file.endsWith('.json'));
    const found = files.flatMap((file) => parseStatus(machine.disk.text(`${STATE}/status/${file}`)) ?? []);
    return new Map(found.map((status) => [status.name, status]));
  };
  const wakeAll = (): void => wakes.forEach((wake) => wake());

  const runtime: InMemoryRuntime = {
    traits: TRAITS,
    foreignPorts: machine.foreignPorts,
    list,
    at: ({ port }) => list().find(({ phase, endpoints }) => phase === 'running' && endpoints[0]?.port === port),
    begunAt: ({ id }) => begun.get(id),
    runningMs(id) {
      const server = find(id);
      return server === undefined || server.stoppedBy !== undefined ? 0 : clock.now() - server.begunAt;
    },
    exit(id, { code = 1 } = {}) {
      const server = find(id);
      if (server !== undefined) machine.end(server, code);
    },
    vanish(id) {
      const server = find(id);
      if (server === undefined) return;
      machine.disk.put(`${STATE}/run/${server.mark?.record.name}.json`, undefined);
      machine.end(server);
    },
    // Processes cannot be altered, and have no images.
    alter: () => undefined,
    addImage: () => undefined,
    removeImage: () => undefined,
    hasImage: () => false,
    plant: () => {
      throw new Error('Start a server instead');
    },
    observe: async () => fail('retry', 'RuntimeUnreachable', 'Each controller has a runtime of its own'),
    pull: async () => ok(undefined),
    apply: async () => fail('retry', 'RuntimeUnreachable', 'Each controller has a runtime of its own'),
    stop: async () => fail('retry', 'RuntimeUnreachable', 'Each controller has a runtime of its own'),
    logs: async function* none() {},
    changes: () => undefined,
  };

  return {
    machine,
    runtime,
    slots: SLOTS,
    idOf,
    listen: (wake: Wake, signal: AbortSignal) => listen(wakes, wake, signal),
    edit(name: SlotName, document: SlotDocument, spec: SlotSpec): void {
      const edited = rewriteSlotText('', document);
      if (!edited.ok) throw new Error(JSON.stringify(edited.problems));
      machine.disk.put(fileOf(name), edited.text);
      const slot = declared.get(name) ?? { specs: [], told: undefined };
      slot.specs.push(spec);
      declared.set(name, slot);
      wakeAll();
    },
    spoil(name: SlotName): void {
      machine.disk.put(fileOf(name), '[model\n');
      wakeAll();
    },
    remove(name: SlotName): void {
      machine.disk.put(fileOf(name), undefined);
      declared.delete(name);
      wakeAll();
    },
    /** Deletes the record of a server. Returns whose it was. */
    loseRecord(random: Random): WorkloadId | undefined {
      const files = machine.disk.list(`${STATE}/run`).filter((file) => file.endsWith('.json'));
      const file = files[random.int(0, files.length)];
      const found = /"pid": (\d+),\s+"start": "(\d+)"/.exec(machine.disk.text(`${STATE}/run/${file}`) ?? '');
      if (file === undefined || found === null) return undefined;
      machine.disk.put(`${STATE}/run/${file}`, undefined);
      return WorkloadId.parse(`${file.replace('.json', '')}:${found[1]}:${found[2]}`);
    },
    /** A controller begins, which knows what is stored. */
    begin(): void {
      for (const slot of declared.values()) if (slot.told?.isStored === false) slot.told = undefined;
    },
    /** What the source says of slots that are declared and were not removed since. */
    told({ slots }: DesiredState): void {
      for (const [name, known] of declared) {
        const slot = slots.get(name);
        const before = known.told;
        if (slot === undefined && before !== undefined) machine.broke(`The last good spec of "${name}" is lost`);
        if (slot === undefined) continue;
        if (before !== undefined && slot.generation < before.generation)
          machine.broke(`The generation of "${name}" fell from ${before.generation} to ${slot.generation}`);
        const at = known.specs.findIndex((spec) => isSameValue(spec, slot.spec));
        // A read that was under way knows what was declared before.
        if (at < 0 && before === undefined) continue;
        if (at < 0) machine.broke(`The spec of "${name}" is not the last good one`);
        known.specs = known.specs.slice(Math.max(0, at));
        const isStored = storedGeneration(name) === slot.generation;
        if (!isStored && machine.isWhole()) machine.broke(`The generation of "${name}" is not stored`);
        known.told = { generation: slot.generation, isStored };
      }
    },
    recorded,
    /** Notes what a status describes. */
    reported(statuses: readonly SlotStatus[], slots: ReadonlyMap<SlotName, DesiredSlot>): void {
      for (const status of statuses) {
        const slot = slots.get(status.name);
        if (slot !== undefined) described.set(JSON.stringify(status), slot);
      }
    },
    statusesOf(): ReadonlyMap<SlotName, DesiredSlot> {
      return new Map(
        [...recorded()].flatMap(([name, status]) => {
          const slot = described.get(JSON.stringify(status));
          return slot === undefined ? [] : [[name, slot] as const];
        }),
      );
    },
    /** The newest entry of the timelines on the disk. */
    lastSeq(): number {
      const files = machine.disk.list(`${STATE}/timelines`).map((file) => machine.disk.text(`${STATE}/timelines/${file}`) ?? '');
      return Math.max(0, ...files.flatMap((text) => [...text.matchAll(/^\{"seq":(\d+).*\}$/gm)].map(([, seq]) => Number(seq))));
    },
  };
}

/** Parses a status file; undefined if it is damaged. */
function parseStatus(text: string | undefined): SlotStatus | undefined {
  try {
    const status: SlotStatus = JSON.parse(text ?? '');
    return SlotName.safeParse(status.name).success ? status : undefined;
  } catch {
    return undefined;
  }
}
