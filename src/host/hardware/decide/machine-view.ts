/** Looks up recorded files and commands of a machine. Pure. */
import type { HardwareRecording } from '../../../schema/status/hardware.ts';

export interface MachineView {
  readonly platform: string;
  /** Trimmed; undefined if the file is missing or empty. */
  text(path: string): string | undefined;
  /** A file with one decimal or `0x…` number; undefined otherwise. */
  number(path: string): number | undefined;
  /** Base name of the target: for `…/driver`, the name of the driver. */
  link(path: string): string | undefined;
  has(path: string): boolean;
  /** Sorted; empty without such a directory. */
  names(directory: string): readonly string[];
  /** Output of a command; undefined if it did not run or failed. */
  tool(command: readonly string[]): string | undefined;
}

export function viewOf({ platform, files, links, present, tools }: HardwareRecording): MachineView {
  const paths = new Set([...Object.keys(files), ...Object.keys(links), ...present]);
  const directories = indexDirectories(paths);
  const text = (path: string): string | undefined => (Object.hasOwn(files, path) ? trimmed(files[path]) : undefined);
  return {
    platform,
    text,
    number: (path) => parseNumber(text(path)),
    link: (path) => (Object.hasOwn(links, path) ? trimmed(links[path]) : undefined),
    has: (path) => paths.has(path) || directories.has(path),
    names: (directory) => [...(directories.get(directory) ?? [])].toSorted(byNumber),
    tool(command) {
      const key = command.join(' ');
      return Object.hasOwn(tools, key) ? trimmed(tools[key]) : undefined;
    },
  };
}

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

/** `renderD128` before `renderD1000`. */
function byNumber(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}
