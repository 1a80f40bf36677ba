/**
 * Reads the engines that `<config>/engines/*.toml` declares; the file name is the name of the engine. An invalid file
 * keeps the last good definition, also after a restart. So does a deleted one while slots name it: their servers must
 * not become unreachable. Other engines are not affected.
 */
import path from 'node:path';
import { parseEngine, type EngineDefinition } from '../schema/slot/engine-document.ts';
import { formatProblem, type SpecProblem } from '../schema/slot/spec-problem.ts';
import { isTable } from '../schema/words/key-case.ts';
import { isSameValue } from '../schema/words/same-value.ts';
import { parseJson } from '../platform/decide/parse-json.ts';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { createTextFileMemory, type TextFile } from './read-text-file.ts';
import { LARGE_TEXT_BYTES, readRegularFile } from './regular-file.ts';
import { parseDocument, placeProblems } from './toml/decide/parse-document.ts';
import { ifThere, listDirectory, storeLastGood } from './write-file.ts';

export interface Engines {
  /** Definitions in force by name; an unchanged one is the same object as before. */
  readonly definitions: ReadonlyMap<string, EngineDefinition>;
  /** Problems of the present files, by name of the engine. */
  readonly problems: ReadonlyMap<string, readonly SpecProblem[]>;
}

export interface EngineDirectoryOptions {
  /** `<config>/engines`; it need not exist. */
  readonly directory: string;
  /** JSON file of the definitions in force; in memory only if unset. */
  readonly lastGoodFile?: string | undefined;
  readonly log: SourceLog;
}

interface Accepted {
  readonly document: unknown;
  readonly definition: EngineDefinition;
}

type Found = Accepted | { readonly problems: readonly SpecProblem[] };

/** A machine has a few engines; each definition travels with its slots. */
const MOST_ENGINES = 200;

export function createEngineDirectory({ directory, lastGoodFile, log }: EngineDirectoryOptions) {
  const memory = createTextFileMemory();
  const parsed = new Map<string, { readonly file: TextFile; readonly found: Found }>();
  let accepted: ReadonlyMap<string, Accepted> | undefined;
  let logged = '';

  /** Undefined if the file has been deleted meanwhile. */
  async function readOne(name: string): Promise<Found | undefined> {
    const file = path.join(directory, `${name}.toml`);
    const read = (await memory.read(file))?.file;
    const known = parsed.get(name);
    if (read === undefined || known?.file === read) return read && known?.found;
    const found = read.kind === 'text' ? parseText(name, read.text, file, log) : { problems: [{ ...read, path: [], file }] };
    parsed.set(name, { file: read, found });
    return found;
  }

  async function readAll(): Promise<ReadonlyMap<string, Found>> {
    const names = (await listDirectory(directory)).filter((file) => file.endsWith('.toml') && !file.startsWith('.')).toSorted();
    const found = new Map<string, Found>();
    for (const file of names.slice(0, MOST_ENGINES)) {
      const name = file.slice(0, -'.toml'.length);
      const one = await readOne(name);
      if (one !== undefined) found.set(name, one);
    }
    for (const name of parsed.keys()) if (!found.has(name)) parsed.delete(name);
    return found;
  }

  return {
    /** `used`: engines that slots name. Never throws. */
    async read(used: ReadonlySet<string>): Promise<Engines> {
      accepted ??= await readLastGood(lastGoodFile, log);
      const before = accepted;
      const problems = new Map<string, readonly SpecProblem[]>();
      const after = new Map<string, Accepted>();
      let found: ReadonlyMap<string, Found>;
      try {
        found = await readAll();
      } catch (error) {
        const message = `The directory cannot be read, and its engines keep their last good definitions: ${messageOf(error)}`;
        found = new Map([...before.keys()].map((name) => [name, { problems: [{ path: [], file: directory, message }] }]));
      }
      for (const [name, one] of found) {
        const last = before.get(name);
        if ('definition' in one) after.set(name, last !== undefined && isSameValue(last.definition, one.definition) ? last : one);
        else {
          problems.set(name, one.problems.map(last === undefined ? (each) => each : keepsLastGood));
          if (last !== undefined) after.set(name, last);
        }
      }
      for (const [name, last] of before) {
        if (found.has(name) || !used.has(name)) continue;
        const file = path.join(directory, `${name}.toml`);
        problems.set(name, [
          keepsLastGood({ path: [], file, message: 'This file of an engine is missing, and slots name the engine; restore it' }),
        ]);
        after.set(name, last);
      }
      const text = [...problems.values()]
        .flat()
        .map((problem) => formatProblem(problem))
        .join('; ');
      if (text !== logged && text !== '') log.warn({}, text);
      logged = text;
      accepted = after;
      if (!isSameValue(documentsOf(before), documentsOf(after))) {
        const stored = after.size === 0 ? undefined : documentsOf(after);
        await storeLastGood(lastGoodFile, stored, `engines of "${directory}"`, log);
      }
      return { definitions: new Map([...after].map(([name, { definition }]) => [name, definition])), problems };
    },
  };
}

const keepsLastGood = (problem: SpecProblem): SpecProblem => ({
  ...problem,
  message: `${problem.message}; the last good definition stays in force`,
});

const documentsOf = (accepted: ReadonlyMap<string, Accepted>): Readonly<Record<string, unknown>> =>
  Object.fromEntries([...accepted].map(([name, { document }]) => [name, document]));

function parseText(name: string, text: string, file: string, log: SourceLog): Found {
  const read = parseDocument(text);
  if (!read.ok) return { problems: [{ path: [], message: read.message, file, ...read.position }] };
  const engine = parseEngine(name, read.document);
  if (!engine.ok) return { problems: placeProblems(text, file, engine.problems) };
  for (const warning of placeProblems(text, file, engine.warnings)) log.warn({ file }, formatProblem(warning));
  return { document: read.document, definition: engine.definition };
}

async function readLastGood(file: string | undefined, log: SourceLog): Promise<ReadonlyMap<string, Accepted>> {
  if (file === undefined) return new Map();
  try {
    const stored: unknown = parseJson((await ifThere(readRegularFile(file, { mostBytes: LARGE_TEXT_BYTES }))) ?? '{}');
    const entries = Object.entries(isTable(stored) ? stored : {}).flatMap(([name, document]) => {
      const engine = parseEngine(name, document);
      return engine.ok ? [[name, { document, definition: engine.definition }] as const] : [];
    });
    return new Map(entries);
  } catch (error) {
    log.warn({ file }, `The last good engines in "${file}" cannot be read: ${messageOf(error)}`);
    return new Map();
  }
}
