/** When each token was last used, in the state directory, so that uses never touch a file that people edit. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { writeJsonAtomically } from '../files/write-file.ts';
import { parseJson } from '../platform/decide/parse-json.ts';
import { messageOf } from '../platform/error-text.ts';
import type { Log } from '../platform/log.ts';
import { TOKEN_ID } from './decide/token-file-text.ts';

export interface TokenUse {
  note(id: string): void;
  /** Unix milliseconds by id. */
  lastUses(): ReadonlyMap<string, number>;
  /** Writes what was noted since the last time. Never throws. */
  flush(): Promise<void>;
}

/** Id → ISO 8601 in UTC. */
const Uses = z.record(z.string().regex(TOKEN_ID), z.iso.datetime());

/** A file that cannot be read counts as empty: it says nothing that anything depends on. */
export async function readTokenUse(path: string): Promise<ReadonlyMap<string, number>> {
  const uses = Uses.safeParse(parseJson(await readFile(path, 'utf8').catch(() => '')));
  return new Map(Object.entries(uses.data ?? {}).map(([id, at]) => [id, Date.parse(at)]));
}

export async function createTokenUse(options: {
  readonly path: string;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** Tokens that are gone are not written again. */
  readonly isKnown: (id: string) => boolean;
  readonly log: Pick<Log, 'warn'>;
}): Promise<TokenUse> {
  const { path, wallNow, isKnown, log } = options;
  const uses = new Map(await readTokenUse(path));
  let isNoted = false;
  return {
    note(id) {
      uses.set(id, wallNow());
      isNoted = true;
    },
    lastUses: () => uses,
    async flush() {
      if (!isNoted) return;
      isNoted = false;
      for (const id of uses.keys()) if (!isKnown(id)) uses.delete(id);
      const times = Object.fromEntries([...uses].map(([id, at]) => [id, new Date(at).toISOString()]));
      await writeJsonAtomically(path, times, 0o600).catch((error: unknown) =>
        log.warn({ file: path }, `Could not record when tokens were last used: ${messageOf(error)}`),
      );
    },
  };
}
