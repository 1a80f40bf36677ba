/** The last good spec of each slot with its generation, in `<state>/slots/<name>.json`: what a bad edit falls back to, after a restart too. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { isTable } from '../../schema/key-case.ts';
import { SlotName } from '../../schema/names.ts';
import { isSameValue } from '../../schema/same-value.ts';
import { parseSlot } from '../../schema/slot-spec.ts';
import type { AcceptedSlot } from './decide/accept-slots.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import type { SourceLog } from '../../platform/log.ts';
import { writeFileAtomically } from '../../files/write-file.ts';

export interface LastGoodSlots {
  read(): Promise<ReadonlyMap<SlotName, AcceptedSlot>>;
  /** Writes what differs. A slot that cannot be kept is said in the log; its spec stays in force until the next restart. */
  write(before: ReadonlyMap<SlotName, AcceptedSlot>, after: ReadonlyMap<SlotName, AcceptedSlot>): Promise<void>;
}

/** The document is kept, not the resolved spec: a default may change with the program. */
const Kept = z.object({ generation: z.int().min(1), document: z.unknown() });

export function createLastGoodSlots(directory: string, log: SourceLog): LastGoodSlots {
  return {
    async read() {
      const kept = new Map<SlotName, AcceptedSlot>();
      for (const file of await listJson(directory)) {
        const name = SlotName.safeParse(file.slice(0, -'.json'.length));
        if (!name.success) continue;
        const slot = await readKept(join(directory, file), name.data, log);
        if (slot !== undefined) kept.set(name.data, slot);
      }
      return kept;
    },
    async write(before, after) {
      for (const [name, slot] of after) {
        const path = join(directory, `${name}.json`);
        const old = before.get(name);
        if (old?.generation === slot.generation && isSameValue(old.good?.document, slot.good?.document)) continue;
        try {
          if (slot.good === undefined) await rm(path, { force: true });
          else await writeFileAtomically(path, jsonOf(slot), { mode: 0o600 });
        } catch (error) {
          log.warn({ slot: name, error: messageOf(error) }, `Keeping the last good spec of slot "${name}" in "${path}" failed`);
        }
      }
    },
  };
}

function jsonOf(slot: AcceptedSlot): string {
  return `${JSON.stringify({ generation: slot.generation, document: slot.good?.document }, undefined, 2)}\n`;
}

async function listJson(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory).catch((): string[] => []);
  return names.filter((name) => name.endsWith('.json') && !name.startsWith('.'));
}

async function readKept(path: string, name: SlotName, log: SourceLog): Promise<AcceptedSlot | undefined> {
  try {
    const { generation, document } = Kept.parse(JSON.parse(await readFile(path, 'utf8')));
    const parsed = parseSlot(name, document);
    return { generation, good: parsed.ok && isTable(document) ? { spec: parsed.spec, document } : undefined };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    log.warn({ slot: name, error: messageOf(error) }, `The last good spec of slot "${name}" in "${path}" cannot be read; it is not used`);
    return undefined;
  }
}
