/** Reads and writes the pins of a store. */
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { LARGE_TEXT_BYTES, readRegularFile } from '../files/regular-file.ts';
import { parseJson } from '../platform/decide/parse-json.ts';
import type { ModelId } from '../schema/words/names.ts';
import { writeStoreFile } from './download/disk-room.ts';
import { Pin, pinPath, PINS_DIRECTORY } from './decide/pin.ts';

export type Pins = ReturnType<typeof createPins>;

export function createPins(root: string) {
  const parse = async (file: string): Promise<Pin | undefined> => {
    const text = await readRegularFile(path.join(root, file), { mostBytes: LARGE_TEXT_BYTES }).catch(() => undefined);
    return text === undefined ? undefined : Pin.safeParse(parseJson(text)).data;
  };
  return {
    /** Undefined if there is none or it cannot be read; then the name is resolved again. */
    async read(id: ModelId): Promise<Pin | undefined> {
      const pin = await parse(pinPath(id));
      return pin?.id === id ? pin : undefined;
    },
    async write(pin: Pin): Promise<void> {
      await writeStoreFile(path.join(root, pinPath(pin.id)), pin);
    },
    async remove(id: ModelId): Promise<void> {
      await rm(path.join(root, pinPath(id)), { force: true });
    },
    async list(): Promise<readonly Pin[]> {
      const names = await readdir(path.join(root, PINS_DIRECTORY)).catch(() => []);
      const pins = await Promise.all(names.filter((name) => name.endsWith('.json')).map((name) => parse(`${PINS_DIRECTORY}/${name}`)));
      return pins.flatMap((pin) => pin ?? []);
    },
  };
}
