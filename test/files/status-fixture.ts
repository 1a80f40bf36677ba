/** Statuses and timeline entries, as the controller reports them. */
import { ModelId, SlotName } from '../../src/schema/words/names.ts';
import type { SlotStatus, TimelineEntry } from '../../src/schema/status/slot-status.ts';
import type { createStatusFiles } from '../../src/files/status-files.ts';

export const img = SlotName.parse('img');
export const embed = SlotName.parse('embed');

export const status = (name: SlotName, restarts: number): SlotStatus => ({
  name,
  state: 'ready',
  conditions: [],
  observedGeneration: 1,
  provider: 'gguf',
  backend: 'cpu',
  model: ModelId.parse('a.gguf'),
  restarts,
  since: 1,
});

export const entry = (seq: number, slot: SlotName = img, message = `Entry ${seq}`): TimelineEntry => ({
  seq,
  at: seq,
  slot,
  kind: 'action',
  message,
});

/** Resolves when everything is on the disk, or could not be written. */
export async function writeReport(
  files: ReturnType<typeof createStatusFiles>,
  statuses: readonly SlotStatus[],
  entries: readonly TimelineEntry[] = [],
): Promise<void> {
  files.write({ at: 1, statuses, entries, refused: new Map() });
  await files.flush();
}
