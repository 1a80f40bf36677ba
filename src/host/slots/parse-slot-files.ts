/** Parses slot files, each text once: a file that is the same object as in the last look is not parsed again. */
import { join } from 'node:path';
import type { TextFile } from '../../files/read-text-file.ts';
import { createBreather, type Breather } from '../../platform/slices.ts';
import { SlotName } from '../../schema/words/names.ts';
import type { SpecProblem } from '../../schema/slot/slot-spec.ts';
import { parseSlotText, type ParsedSlotText } from './decide/parse-slot-text.ts';
import type { SlotFiles } from './slot-files.ts';

export interface ParsedSlotFiles {
  readonly parsed: ReadonlyMap<SlotName, ParsedSlotText>;
  /** Of files whose name cannot be a slot's name. */
  readonly problems: readonly SpecProblem[];
}

type ParsedFile = { readonly file: TextFile } & (
  | { readonly name: SlotName; readonly parsed: ParsedSlotText }
  | { readonly name: undefined; readonly problem: SpecProblem }
);

export interface SlotFileParserOptions {
  readonly parse?: typeof parseSlotText;
  readonly breather?: () => Breather;
}

/** The returned function must not run twice at the same time. Thousands of new texts are parsed in slices, between which requests are forwarded. */
export function createSlotFileParser(
  directory: string,
  { parse = parseSlotText, breather = createBreather }: SlotFileParserOptions = {},
): (files: SlotFiles) => Promise<ParsedSlotFiles> {
  let last: ReadonlyMap<string, ParsedFile> = new Map();
  return async (files) => {
    const breathe = breather();
    const next = new Map<string, ParsedFile>();
    for (const [fileName, file] of files) {
      const known = last.get(fileName);
      if (known?.file === file) next.set(fileName, known);
      else {
        next.set(fileName, parseFile(join(directory, fileName), { fileName, file, parse }));
        await breathe();
      }
    }
    last = next;
    const parsed = new Map<SlotName, ParsedSlotText>();
    const problems: SpecProblem[] = [];
    for (const each of next.values())
      if (each.name === undefined) problems.push(each.problem);
      else parsed.set(each.name, each.parsed);
    return { parsed, problems };
  };
}

interface FoundFile {
  readonly fileName: string;
  readonly file: TextFile;
  readonly parse: typeof parseSlotText;
}

function parseFile(path: string, { fileName, file, parse }: FoundFile): ParsedFile {
  const name = SlotName.safeParse(fileName.slice(0, -'.toml'.length));
  if (!name.success) {
    const message = `Rename this file. ${name.error.issues[0]?.message ?? ''}`;
    return { file, name: undefined, problem: { path: [], file: path, line: 1, column: 1, message } };
  }
  if (file.kind === 'text') return { file, name: name.data, parsed: parse(name.data, file.text, path) };
  const { message, line, column } = file;
  return { file, name: name.data, parsed: { ok: false, document: undefined, problems: [{ path: [], file: path, line, column, message }] } };
}
