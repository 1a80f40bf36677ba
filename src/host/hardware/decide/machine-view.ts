/** Looks up recorded files and commands of a machine. Pure. */
import type { HardwareRecording } from '../../../schema/status/hardware.ts';

export type MachineView = ReturnType<typeof viewOf>;

export function viewOf({ platform, files, links, present, tools }: HardwareRecording) {
  const paths = new Set([...Object.keys(files), ...Object.keys(links), ...present]);
  const directories = indexDirectories(paths);
  const text = (path: string): string | undefined => (Object.hasOwn(files, path) ? trimmed(files[path]) : undefined);
  return {
    platform,
    /** Trimmed; undefined if the file is missing or empty. */
    text,
    /** A file with one decimal or `0x…` number; undefined otherwise. */
    number: (path: string) => parseNumber(text(path)),
    /** Base name of the target: for `…/driver`, the name of the driver. */
    link: (path: string) => (Object.hasOwn(links, path) ? trimmed(links[path]) : undefined),
    has: (path: string) => paths.has(path) || directories.has(path),
    /** Sorted, `renderD128` before `renderD1000`; empty without such a directory. */
    names: (directory: string): readonly string[] =>
      [...(directories.get(directory) ?? [])].toSorted((one, other) => one.localeCompare(other, 'en', { numeric: true })),
    /** Output of a command; undefined if it did not run or failed. */
    tool(command: readonly string[]): string | undefined {
      const key = command.join(' ');
      return Object.hasOwn(tools, key) ? trimmed(tools[key]) : undefined;
    },
  };
}

/** Keeps only lines that match, which is to be a global and multi-line pattern. */
export const keepLines = (text: string, wanted: RegExp): string => (text.match(wanted) ?? []).map((line) => `${line}\n`).join('');

function indexDirectories(paths: ReadonlySet<string>): ReadonlyMap<string, ReadonlySet<string>> {
  const index = new Map<string, Set<string>>();
  for (const path of paths) {
    for (let end = path.length; end > 0;) {
      const slash = path.lastIndexOf('/', end - 1);
      const directory = path.slice(0, Math.max(0, slash));
      const names = index.get(directory) ?? new Set();
      // The parents are known then.
      if (names.has(path.slice(slash + 1, end))) break;
      index.set(directory, names.add(path.slice(slash + 1, end)));
      end = slash;
    }
  }
  return index;
}

/** Undefined unless it is a safe integer. */
export function parseNumber(text: string | undefined): number | undefined {
  if (text === undefined || !/^(?:[0-9]+|0x[0-9a-fA-F]+)$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

function trimmed(text: string | undefined): string | undefined {
  const plain = text?.replaceAll('\0', ' ').trim();
  return plain === '' ? undefined : plain;
}
