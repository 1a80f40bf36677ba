/** Reads the statuses that an earlier run of the service wrote to `<state>/status`. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../platform/decide/parse-json.ts';
import { SlotName } from '../schema/words/names.ts';
import { CONDITION_TYPES, SLOT_STATES } from '../schema/status/slot-status.ts';

const Earlier = z.object({
  name: SlotName,
  state: z.enum(SLOT_STATES),
  since: z.number(),
  // A later version may know more conditions.
  conditions: z.array(z.object({ type: z.string(), status: z.enum(['True', 'False', 'Unknown']), lastTransitionAt: z.number() })),
});
const TYPES = z.enum(CONDITION_TYPES);

/** Ignores files that cannot be read. Never throws. */
export async function readEarlierStatuses(directory: string) {
  const files = (await readdir(directory).catch((): string[] => [])).filter((file) => file.endsWith('.json'));
  const texts = await Promise.all(files.map(async (file) => await readFile(join(directory, file), 'utf8').catch(() => '')));
  const statuses = texts.flatMap((text) => Earlier.safeParse(parseJson(text)).data ?? []);
  return new Map(statuses.map(({ name, state, since, conditions }) => [name, { state, since, conditions: conditions.flatMap(known) }]));
}

function known(condition: z.output<typeof Earlier>['conditions'][number]) {
  const type = TYPES.safeParse(condition.type).data;
  return type === undefined ? [] : [{ ...condition, type }];
}
