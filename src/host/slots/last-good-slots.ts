/** Stores each slot's last good document with its generation in `<state>/slots/<name>.json`: what an invalid edit falls back to, also after a restart. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { isTable } from '../../schema/words/key-case.ts';
import { SlotName } from '../../schema/words/names.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { parseSlot } from '../../schema/slot/slot-spec.ts';
import type { AcceptedSlot, AcceptedSlots } from './decide/accept-slots.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import type { SourceLog } from '../../platform/log.ts';
import { writeJsonAtomically } from '../../files/write-file.ts';

/** The document is stored instead of the resolved spec, since a later version of the program may have other defaults. */
const StoredSlot = z.object({ generation: z.int().min(1), document: z.unknown() });

export function createLastGoodSlots(directory: string, log: SourceLog) {
  return {
    async read(): Promise<AcceptedSlots> {
      const slots = new Map<SlotName, AcceptedSlot>();
      for (const file of await readdir(directory).catch((): string[] => [])) {
        const name = SlotName.safeParse(/^(.*)\.json$/.exec(file)?.[1]);
        if (!name.success) continue;
        const slot = await readSlot(join(directory, file), name.data, log);
        if (slot !== undefined) slots.set(name.data, slot);
      }
      return slots;
    },
    /** Writes the slots that differ. Logs a slot that cannot be stored; its spec stays in force until the next restart. */
    async write(before: AcceptedSlots, after: AcceptedSlots): Promise<void> {
      for (const [name, { generation, lastGood }] of after) {
        const path = join(directory, `${name}.json`);
        const old = before.get(name);
        if (old?.generation === generation && isSameValue(old.lastGood?.document, lastGood?.document)) continue;
        try {
          if (lastGood === undefined) await rm(path, { force: true });
          else await writeJsonAtomically(path, { generation, document: lastGood.document }, 0o600);
        } catch (error) {
          log.warn({ slot: name, error: messageOf(error) }, `Storing the last good spec of slot "${name}" in "${path}" failed`);
        }
      }
    },
  };
}

async function readSlot(path: string, name: SlotName, log: SourceLog): Promise<AcceptedSlot | undefined> {
  try {
    const { generation, document } = StoredSlot.parse(JSON.parse(await readFile(path, 'utf8')));
    const parsed = parseSlot(name, document);
    return { generation, lastGood: parsed.ok && isTable(document) ? { spec: parsed.spec, document } : undefined };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    log.warn({ slot: name, error: messageOf(error) }, `The last good spec of slot "${name}" in "${path}" is damaged and ignored`);
    return undefined;
  }
}
