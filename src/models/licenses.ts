/** Which licences were accepted: those of the setting, and those that somebody accepted for this store, who stay accepted. */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { parseJson } from '../platform/decide/parse-json.ts';
import { failUnlessWritable } from './pull/check-writable.ts';

export interface Licenses {
  /** In lower case. */
  accepted(): Promise<ReadonlySet<string>>;
  /** Remembers that a licence was accepted, when, and for which model. */
  accept(license: string, model: string): Promise<void>;
}

const Accepted = z.array(z.object({ license: z.string(), model: z.string(), at: z.string() }));

/** Relative to the root of the store. */
const FILE = '.svc/accepted-licenses.json';

export function createLicenses(root: string, fromSettings: readonly string[]): Licenses {
  const file = path.join(root, FILE);
  const read = async (): Promise<z.output<typeof Accepted>> =>
    Accepted.safeParse(parseJson(await readFile(file, 'utf8').catch(() => '[]'))).data ?? [];
  return {
    async accepted() {
      return new Set([...fromSettings, ...(await read()).map(({ license }) => license)].map((license) => license.toLowerCase()));
    },
    async accept(license, model) {
      const all = [...(await read()), { license, model, at: new Date().toISOString() }];
      const part = `${file}.${randomUUID()}.part`;
      await failUnlessWritable(path.dirname(file));
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(part, `${JSON.stringify(all, undefined, 2)}\n`);
      await rename(part, file);
    },
  };
}
