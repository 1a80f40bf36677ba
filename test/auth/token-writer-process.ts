/** Creates and revokes tokens as fast as it can, until it is killed. Prints "+id" or "-id" as soon as a change is complete, and "~id" before a revocation. Argument: the file. */
import { randomBytes } from 'node:crypto';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { DUMMY_HASH } from '../../src/auth/manage-tokens.ts';
import { createTokenStore, type TokenStore } from '../../src/auth/token-store.ts';

/** How many of its own tokens a writer keeps. */
const KEPT = 5;
const path = process.argv[2] ?? '';
const store = createTokenStore({ path, log: { warn: (_fields, message) => writeSync(2, `${message}\n`) } });
const own: string[] = [];

async function change(edit: Parameters<TokenStore['change']>[0], line: string): Promise<void> {
  const changed = await store.change(edit);
  writeSync(changed.ok ? 1 : 2, changed.ok ? `${line}\n` : `${changed.message}\n`);
}

for (;;) {
  // Lets the other writer have its turn, as pauses between changes of people do.
  await sleep(1);
  const id = randomBytes(4).toString('hex');
  const row = { label: `by ${process.pid}`, scope: 'all', created_at: new Date().toISOString(), hash: DUMMY_HASH } as const;
  await change((tokens) => new Map([...tokens, [id, row]]), `+${id}`);
  own.push(id);
  const oldest = own.length > KEPT ? own.shift() : undefined;
  if (oldest === undefined) continue;
  writeSync(1, `~${oldest}\n`);
  await change((tokens) => new Map([...tokens].filter(([other]) => other !== oldest)), `-${oldest}`);
}
