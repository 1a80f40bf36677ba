/** Judges all files of a commit together: who has signed it, what it may contain, and what is wrong with each file. */
import { foreignEncoding, TEXT_BYTES } from '../../files/regular-file.ts';
import { createBreather } from '../../platform/slices.ts';
import {
  areCases,
  isEncrypted,
  isSecret,
  judgeEntries,
  judgeFile,
  judgeTogether,
  listProblems,
  LOOKED_FOR,
  placeOfSecret,
  slotOf,
  type JudgedFile,
} from './decide/judge-tree.ts';
import type { Sourced, TreeEntry, TreeSource } from './ports.ts';
import type { Applied, SourceFiles } from './source-files.ts';

type Decrypted = { readonly text: string } | { readonly problem: string };

export interface JudgeOptions {
  readonly tree: TreeSource;
  readonly files: Pick<SourceFiles, 'localEngines'>;
  /** Undefined: a commit with secrets is refused. */
  readonly decrypt?: ((path: string, bytes: Buffer, signal: AbortSignal) => Promise<Decrypted>) | undefined;
}

/** Returns what a commit declares. A text that was parsed before is not parsed again. */
export function createJudge({ tree, files, decrypt }: JudgeOptions) {
  let known = new Map<string, JudgedFile>();
  const judgeOne = async (path: string, bytes: Buffer, signal: AbortSignal): Promise<JudgedFile> => {
    if (areCases(path)) return await judgeCases(path, bytes);
    if (!isSecret(path)) return judgeFile(path, bytes.toString('utf8'), foreignEncoding(bytes));
    const decrypted = await decryptOne(path, bytes, decrypt, signal);
    return 'text' in decrypted ? { text: decrypted.text, problems: [] } : { text: '', problems: [`${path}: ${decrypted.problem}`] };
  };
  return async (commit: string, applied: Applied, signal: AbortSignal): Promise<Sourced<ReadonlyMap<string, string>>> => {
    const verified = await tree.verify(commit, signal);
    if (!verified.ok) return verified;
    const listed = await tree.list(commit, LOOKED_FOR, signal);
    if (!listed.ok) return listed;
    const { files: entries, problems } = judgeEntries(listed.value, TEXT_BYTES);
    if (problems.length > 0) return invalid(problems);
    const keyOf = ({ path, id }: Pick<TreeEntry, 'path' | 'id'>): string => `${id} ${path}`;
    const unread = entries.filter((entry) => !known.has(keyOf(entry)));
    const ids = unread.map(({ id }) => id);
    const contents = await tree.read(ids, signal);
    if (!contents.ok) return contents;
    const read = new Map(unread.map((entry, index) => [keyOf(entry), contents.value[index] ?? Buffer.alloc(0)]));
    const breathe = createBreather();
    const byPath = new Map<string, JudgedFile>();
    const next = new Map<string, JudgedFile>();
    for (const entry of entries) {
      const key = keyOf(entry);
      const judged = known.get(key) ?? (await judgeOne(entry.path, read.get(key) ?? Buffer.alloc(0), signal));
      byPath.set(entry.path, judged);
      // What cannot be decrypted now may be later, with another key.
      if (!isSecret(entry.path) || judged.problems.length === 0) next.set(key, judged);
      await breathe();
    }
    known = next;
    const slots = [...applied.files.keys()].filter((path) => slotOf(path) !== undefined).length;
    const own = [...byPath.values()].flatMap((file) => file.problems);
    const all = own.length > 0 ? own : judgeTogether(byPath, await files.localEngines(applied.files), slots);
    if (all.length > 0) return invalid(all);
    return { ok: true, value: new Map([...byPath].map(([path, { text }]) => [isSecret(path) ? placeOfSecret(path) : path, text])) };
  };
}

async function judgeCases(path: string, bytes: Buffer): Promise<JudgedFile> {
  const judged = judgeFile(path, bytes.toString('utf8'), foreignEncoding(bytes));
  if (judged.problems.length > 0) return judged;
  // What judges patterns and JSON Schemas is large, and few repositories have cases.
  const { parseCases } = await import('../../evaluation/decide/parse-cases.ts');
  const { mistake } = parseCases(judged.text);
  return mistake === undefined ? judged : { ...judged, problems: [`${path}: ${mistake}`] };
}

async function decryptOne(path: string, bytes: Buffer, decrypt: JudgeOptions['decrypt'], signal: AbortSignal): Promise<Decrypted> {
  if (!isEncrypted(bytes.toString('latin1')))
    return { problem: 'This file is not encrypted with age or sops: encrypt it, and replace the secret in it, which others may have read' };
  return decrypt === undefined
    ? { problem: '"SVC_GIT_DECRYPT" is not set: set it to the command that decrypts this file' }
    : await decrypt(path, bytes, signal);
}

const invalid = (problems: readonly string[]): Sourced<never> => ({
  ok: false,
  problem: {
    reason: 'CommitInvalid',
    message: `${listProblems(problems).join('; ')}. Nothing of the commit was applied: correct it with another commit`,
  },
});
