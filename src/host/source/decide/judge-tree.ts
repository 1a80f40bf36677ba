/** Which files of a commit declare configuration, and what is wrong with them. Pure. */
import { parseDocument, placeProblems } from '../../../files/toml/decide/parse-document.ts';
import { parseEngine } from '../../../schema/slot/engine-document.ts';
import { isBuiltInKind } from '../../../schema/slot/provider-kinds.ts';
import { formatProblem } from '../../../schema/slot/spec-problem.ts';
import { ProfileName, SlotName } from '../../../schema/words/names.ts';
import { parseSlotText } from '../../slots/decide/parse-slot-text.ts';
import type { TreeEntry } from '../ports.ts';

/** The places at the root of the configuration that a commit is read for. */
export const DECLARED = ['slots', 'engines', 'profiles', 'checks', 'secrets'];
/** Files with secrets are never taken from a repository. */
const SECRET = ['tokens.toml', 'api.env'];
export const LOOKED_FOR = [...DECLARED, ...SECRET];
/** More than any machine has; each is parsed. */
const MOST_FILES = 5000;
const MOST_BYTES = 64 * 2 ** 20;
const LFS_POINTER = 'version https://git-lfs.github.com/spec/';
/** A status is read by people, who correct the first ones. */
const MOST_PROBLEMS = 20;

export interface JudgedTree {
  readonly files: readonly TreeEntry[];
  readonly problems: readonly string[];
}

/** Leaves other files out, such as `README.md`. `mostBytes`: of one file. */
export function judgeEntries(entries: readonly TreeEntry[], mostBytes: number): JudgedTree {
  const problems = entries.flatMap((entry) => problemOf(entry, mostBytes) ?? []);
  const files = entries.filter(({ kind, path }) => kind === 'file' && isDeclaration(path));
  if (files.length > MOST_FILES) problems.push(`The commit has ${files.length} files, more than ${MOST_FILES}; remove some`);
  const bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (bytes > MOST_BYTES) problems.push(`The files have more than ${MOST_BYTES / 2 ** 20} MiB together; make them smaller`);
  return { files, problems: listProblems(problems) };
}

export const listProblems = (problems: readonly string[]): readonly string[] =>
  problems.length <= MOST_PROBLEMS
    ? problems
    : [...problems.slice(0, MOST_PROBLEMS), `and ${problems.length - MOST_PROBLEMS} more problems`];

const isDeclaration = (path: string): boolean =>
  isSecret(path) || areCases(path) || /^(?:slots|engines|profiles\/[^/.][^/]*)\/[^/.][^/]*\.toml$/.test(path);

/** Cases that judge new models. */
export const areCases = (path: string): boolean => /^checks\/[^/.][^/]*\.jsonl$/.test(path);

/** An encrypted file. */
export const isSecret = (path: string): boolean => /^secrets\/[A-Za-z0-9][A-Za-z0-9._-]*$/.test(path) && !path.endsWith('.md');

/** Where the text of a secret is, relative to the state of the source: without what says how it is encrypted. */
export const placeOfSecret = (path: string): string => path.replace(/\.age$/, '').replace(/\.sops(?=\.|$)/, '');

/** Whether it looks like a file of age or sops. A secret that somebody has committed as it is must not be used. */
export const isEncrypted = (text: string): boolean =>
  /^(?:age-encryption\.org\/v1\n|-----BEGIN AGE ENCRYPTED FILE-----)/.test(text) ||
  /^(?:sops:|\s*"sops"\s*:|sops_version\s*=|\[sops\])/m.test(text);

/** The slot that a file declares. */
export const slotOf = (path: string): SlotName | undefined => SlotName.safeParse(/^slots\/([^/]+)\.toml$/.exec(path)?.[1]).data;

function problemOf({ path, kind, sizeBytes }: TreeEntry, mostBytes: number): string | undefined {
  if (SECRET.includes(path)) return `"${path}": secrets do not belong in a repository; remove this file, and replace the secrets in it`;
  if (kind === 'submodule') return `"${path}" is a submodule, and these are not fetched; replace it by files`;
  if (kind === 'link') return `"${path}" is a symbolic link, and these are not followed; replace it by a copy`;
  if (DECLARED.includes(path)) return `"${path}" is a file, but has to be a directory; rename it`;
  if (!isDeclaration(path)) return undefined;
  if (path.includes('\u{FFFD}')) return `"${path}": the file name is not valid UTF-8; rename it`;
  if (sizeBytes > mostBytes) return `"${path}" has ${sizeBytes} bytes, more than ${mostBytes / 2 ** 20} MiB; make it smaller`;
  const [place, name = ''] = path.split('/');
  const profile = place === 'profiles' ? ProfileName.safeParse(name) : undefined;
  return profile?.success === false ? `"${path}": rename the directory. ${profile.error.issues[0]?.message ?? ''}` : undefined;
}

export interface JudgedFile {
  readonly text: string;
  readonly problems: readonly string[];
  /** What the slot or engine declares. */
  readonly provider?: string | undefined;
}

/**
 * Parses a file as the service does where it is in force; cases are parsed by the caller. `encoding`: the one that it
 * has instead of UTF-8.
 */
export function judgeFile(path: string, text: string, encoding: string | undefined): JudgedFile {
  if (encoding !== undefined) return { text: '', problems: [`${path}: This file is ${encoding}; save it as UTF-8`] };
  if (text.startsWith(LFS_POINTER))
    return { text, problems: [`${path}: This is a pointer of Git LFS, whose files are not fetched; commit the text itself`] };
  if (areCases(path)) return { text, problems: [] };
  const name = path.slice(path.lastIndexOf('/') + 1, -'.toml'.length);
  return path.startsWith('engines/') ? judgeEngine(path, name, text) : judgeSlot(path, name, text);
}

function judgeSlot(path: string, name: string, text: string): JudgedFile {
  const slot = SlotName.safeParse(name);
  if (!slot.success)
    return { text, problems: [`${path}: The file name is not the name of a slot; rename it. ${slot.error.issues[0]?.message ?? ''}`] };
  const parsed = parseSlotText(slot.data, text, path);
  if (!parsed.ok) return { text, problems: parsed.problems.map((problem) => formatProblem(problem)) };
  return { text, problems: [], provider: parsed.spec.provider };
}

function judgeEngine(path: string, name: string, text: string): JudgedFile {
  const read = parseDocument(text);
  if (!read.ok) return { text, problems: [formatProblem({ path: [], message: read.message, file: path, ...read.position })] };
  const engine = parseEngine(name, read.document);
  return engine.ok
    ? { text, problems: [] }
    : { text, problems: placeProblems(text, path, engine.problems).map((each) => formatProblem(each)) };
}

/**
 * What is wrong with files that are valid one by one. `engines`: those of this machine; `before`: number of slots that
 * the commit in force declares.
 */
export function judgeTogether(files: ReadonlyMap<string, JudgedFile>, engines: ReadonlySet<string>, before: number): readonly string[] {
  const slots = [...files].filter(([path]) => slotOf(path) !== undefined);
  const problems = slots.flatMap(([path, { provider }]) =>
    provider === undefined || isBuiltInKind(provider) || engines.has(provider) || files.has(`engines/${provider}.toml`)
      ? []
      : [`${path}: There is no engine "${provider}": add "engines/${provider}.toml", or correct "provider"`],
  );
  const places = [...files.keys()].filter(isSecret).map(placeOfSecret);
  for (const place of new Set(places.filter((each, index) => places.indexOf(each) !== index)))
    problems.push(`Several files are "${place}" when they are decrypted; rename all but one`);
  if (slots.length === 0 && before > 0)
    problems.push(
      `The commit has no file in "slots" and would remove all ${before} slots: check "SVC_GIT_PATH", or leave one slot with "enabled = false"`,
    );
  return problems;
}
