/** The cases that judge a new model: a file below the configuration directory, or a list in the text of its slot. */
import { basename, dirname, join } from 'node:path';
import type { readChecks } from '../../evaluation/decide/parse-cases.ts';
import { createTextFileMemory, type TextFile, type TextFileMemoryOptions } from '../../files/read-text-file.ts';
import { placeProblems } from '../../files/toml/decide/parse-document.ts';
import { watchDirectory, type WatchDirectoryOptions } from '../../files/watch-directory.ts';
import { hasChecks } from '../../schema/slot/scaling.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { ParsedSlotText } from './decide/parse-slot-text.ts';
import type { SlotFiles } from './slot-files.ts';

export interface CheckFilesOptions extends Omit<WatchDirectoryOptions, 'directory'> {
  /** `<config>`. */
  readonly configDirectory: string;
  /** `<config>/slots`. */
  readonly directory: string;
  readonly reading?: TextFileMemoryOptions;
}

export function createCheckFiles({ configDirectory, directory, reading, ...watching }: CheckFilesOptions) {
  const memory = createTextFileMemory(reading);
  /** What was made of each text, as long as it and its file of cases are the same objects. */
  let last = new Map<SlotName, { readonly text: ParsedSlotText; readonly file: TextFile | undefined; readonly complete: ParsedSlotText }>();
  const watched = new Map<string, AbortController>();
  /** What judges patterns and JSON Schemas is large, and few slots have cases. */
  let parser: Promise<{ readonly readChecks: typeof readChecks }> | undefined;
  let watch: ((path: string, signal: AbortSignal) => void) | undefined;

  const pathOf = (text: ParsedSlotText): string | undefined =>
    text.ok && text.spec.rollout?.check !== undefined ? join(configDirectory, text.spec.rollout.check) : undefined;

  function follow(paths: ReadonlySet<string>): void {
    if (watch === undefined) return;
    for (const [path, own] of watched) if (!paths.has(path) && watched.delete(path)) own.abort();
    for (const path of paths) {
      if (watched.has(path)) continue;
      const own = new AbortController();
      watched.set(path, own);
      watch(path, own.signal);
    }
  }

  return {
    /** Adds its cases to each text that has some. A mistake in them is one of the text. */
    async complete(texts: ReadonlyMap<SlotName, ParsedSlotText>, files: SlotFiles): Promise<ReadonlyMap<SlotName, ParsedSlotText>> {
      const present: typeof last = new Map();
      for (const [name, text] of texts) {
        if (!text.ok || !hasChecks(text.spec.rollout)) continue;
        const path = pathOf(text);
        const file = path === undefined ? undefined : (await memory.read(path))?.file;
        const known = last.get(name);
        if (known?.text === text && known.file === file) present.set(name, known);
        else present.set(name, { text, file, complete: await completeText(name, text, file) });
      }
      last = present;
      follow(new Set([...texts.values()].flatMap((text) => pathOf(text) ?? [])));
      return present.size === 0 ? texts : new Map([...texts].map(([name, text]) => [name, present.get(name)?.complete ?? text]));

      async function completeText(
        name: SlotName,
        text: ParsedSlotText & { readonly ok: true },
        file: TextFile | undefined,
      ): Promise<ParsedSlotText> {
        parser ??= import('../../evaluation/decide/parse-cases.ts');
        const read = (await parser).readChecks(text.spec.rollout ?? {}, textOf(file));
        if ('checks' in read) return { ...text, checks: read.checks };
        const slotFile = files.get(`${name}.toml`);
        const path = join(directory, `${name}.toml`);
        const problems = slotFile?.kind === 'text' ? placeProblems(slotFile.text, path, [read.problem]) : [{ ...read.problem, file: path }];
        return { ok: false, document: text.document, problems };
      }
    },
    /** Reports changes of all files of cases until the signal aborts. */
    watch(onQuiet: () => void, signal: AbortSignal): void {
      watch = (path, own) =>
        watchDirectory({ ...watching, directory: dirname(path), names: [basename(path)] }, onQuiet, AbortSignal.any([own, signal]));
    },
  };
}

function textOf(file: TextFile | undefined): { readonly text: string } | { readonly mistake: string } {
  if (file === undefined) return { mistake: 'does not exist below the configuration directory: create it, or correct the path' };
  return file.kind === 'text' ? file : { mistake: `cannot be read: ${file.message}` };
}
