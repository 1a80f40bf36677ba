/** A real directory with slot files, watched by the real source. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DesiredState } from '../../../src/reconciler/ports.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createTomlDirectory, type TomlDirectoryOptions } from '../../../src/host/slots/toml-directory.ts';

export const QUIET_PERIOD_MS = 25;
export const slotText = (model: string, rest = '') => `[model]\ndefault = "${model}"\n${rest}`;

export async function createSlotDirectory(options: Partial<TomlDirectoryOptions> = {}) {
  const root = await mkdtemp(join(tmpdir(), 'svc-slots-'));
  const directory = join(root, 'config', 'slots');
  const lastGoodDirectory = join(root, 'state', 'slots');
  const warnings: string[] = [];
  const log = { info: () => undefined, warn: (_: unknown, message: string) => void warnings.push(message) };
  await mkdir(directory, { recursive: true });
  // The service creates its state directory when it starts, and never again.
  await mkdir(join(root, 'state'));
  const abort = new AbortController();
  const create = () => createTomlDirectory({ directory, lastGoodDirectory, quietPeriodMs: QUIET_PERIOD_MS, log, ...options });
  let source = create();

  const read = async (): Promise<DesiredState> => {
    const result = await source.read(abort.signal);
    if (!result.ok) throw new Error(result.failure.message);
    return result.value;
  };
  /** Reads on each wake, as the loop does, until `wanted` accepts the state; after the first read never without a wake since the last one. */
  const wakes = { count: 0 };
  let seen = -1;
  let state: DesiredState | undefined;
  const reach = async (wanted: (state: DesiredState) => boolean): Promise<DesiredState> => {
    const deadline = Date.now() + 5000;
    while (Date.now() < deadline) {
      if (wakes.count !== seen) {
        seen = wakes.count;
        state = await read();
      }
      if (state !== undefined && wanted(state)) return state;
      await sleep(5);
    }
    throw new Error(`Not reached after ${wakes.count} wakes: ${JSON.stringify(state === undefined ? null : [...state.slots])}`);
  };
  return {
    root,
    directory,
    lastGoodDirectory,
    warnings,
    wakes,
    read,
    reach,
    signal: abort.signal,
    async watch() {
      source.changes(() => void wakes.count++, abort.signal);
      await sleep(150);
    },
    /** Simulates a restart of the controller. */
    restart() {
      source = create();
    },
    write: async (file: string, text: string | Uint8Array) => await writeFile(join(directory, file), text),
    async close() {
      abort.abort();
      await rm(root, { recursive: true, force: true });
    },
  };
}

export const slot = (state: DesiredState, name: string) => state.slots.get(SlotName.parse(name));
export const modelOf = (state: DesiredState, name: string): string | undefined => slot(state, name)?.spec.model.default;
