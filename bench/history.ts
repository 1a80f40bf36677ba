/** What the history of a slot costs an edit: the time of the pass that reads it, the time until it is on disk, and bytes. */
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createRevisionFiles } from '../src/host/slots/revision-files.ts';
import { createTomlDirectory } from '../src/host/slots/toml-directory.ts';
import { SlotName } from '../src/schema/words/names.ts';
import { atMost, median, note, type Row } from './measure.ts';

const EDITS = 200;
const SIGNAL = new AbortController().signal;
const LOG = { info: () => undefined, warn: (_: unknown, message: string) => void process.stdout.write(`${message}\n`) };

export async function measureHistory(): Promise<readonly Row[]> {
  const root = await mkdtemp(path.join(tmpdir(), 'svc-bench-'));
  try {
    const [plain, kept] = [await openSource(root, 'plain'), await openSource(root, 'kept')];
    const times: Record<'plain' | 'kept' | 'written', number[]> = { plain: [], kept: [], written: [] };
    for (let edit = 0; edit < EDITS; edit += 1) {
      times.plain.push(await plain.edit(edit));
      times.kept.push(await kept.edit(edit));
      const begun = performance.now();
      await kept.revisions.flush();
      times.written.push(performance.now() - begun);
    }
    return [
      note('pass that reads an edit, without history, median', `${median(times.plain).toFixed(2)} ms`),
      atMost('added by history', median(times.kept) - median(times.plain), { limit: 5, unit: 'ms' }),
      atMost('until it is on disk, beside the pass, median', median(times.written), { limit: 5, unit: 'ms' }),
      atMost('on disk for an edit', await largestKb(kept.stored), { limit: 64, unit: 'KB', digits: 1 }),
    ];
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function openSource(root: string, name: 'plain' | 'kept') {
  const [directory, state] = [path.join(root, name, 'slots'), path.join(root, name, 'state')];
  await mkdir(directory, { recursive: true });
  await mkdir(state);
  const revisions = createRevisionFiles({ directory: path.join(state, 'revisions'), most: 20, log: LOG, wallNow: Date.now });
  const source = createTomlDirectory({
    directory,
    lastGoodDirectory: path.join(state, 'slots'),
    quietPeriodMs: 0,
    log: LOG,
    ...(name === 'plain' ? {} : { accepted: revisions.follow }),
  });
  return {
    revisions,
    stored: path.join(state, 'revisions', SLOT),
    async edit(count: number): Promise<number> {
      await writeFile(path.join(directory, `${SLOT}.toml`), textOf(count));
      const begun = performance.now();
      const read = await source.read(SIGNAL);
      const took = performance.now() - begun;
      if (!read.ok || read.value.slots.get(SLOT)?.generation !== count + 1) throw new Error(`The edit ${count} was not read`);
      return took;
    },
  };
}

const SLOT = SlotName.parse('primary');

/** A slot with many keys and ten variables of 1,000 characters. */
function textOf(count: number): string {
  const env = Array.from({ length: 10 }, (_, index) => `NAME_${index} = "${'x'.repeat(1000)}"\n`).join('');
  return `backend = "cpu"\npriority = ${count}\n[model]\ndefault = "demo-fox"\ncontext = 8192\n[lifecycle]\nidle_timeout = "15m"\n[env]\n${env}`;
}

async function largestKb(directory: string): Promise<number> {
  const sizes = await Promise.all((await readdir(directory)).map(async (file) => (await stat(path.join(directory, file))).size));
  return Math.max(...sizes) / 1024;
}
