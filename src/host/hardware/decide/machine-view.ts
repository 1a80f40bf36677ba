/** Looks up what was read from a machine. Pure. */
import type { HardwareRecording } from '../../../schema/status/hardware.ts';

export interface MachineView {
  readonly platform: string;
  /** Without white space at both ends; undefined if there is no such file, or if it is empty. */
  text(path: string): string | undefined;
  /** Of a file that consists of one number, decimal or `0x…`; undefined if it is something else. */
  number(path: string): number | undefined;
  /** The last part of what a link points to: for `…/driver`, the name of the driver. */
  link(path: string): string | undefined;
  has(path: string): boolean;
  /** Names in a directory, sorted; none if it does not exist. */
  names(directory: string): readonly string[];
  /** What a command printed; undefined if it was not run or failed. */
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

/** The names in each directory that one of the paths is in. */
function indexDirectories(paths: ReadonlySet<string>): ReadonlyMap<string, ReadonlySet<string>> {
  const index = new Map<string, Set<string>>();
  for (const path of paths) {
    for (let end = path.length; end > 0;) {
      const slash = path.lastIndexOf('/', end - 1);
      const directory = path.slice(0, Math.max(0, slash));
      const names = index.get(directory) ?? new Set();
      // Then the directories above are known as well.
      if (names.has(path.slice(slash + 1, end))) break;
      index.set(directory, names.add(path.slice(slash + 1, end)));
      end = slash;
    }
  }
  return index;
}

/** Undefined for anything but a whole number that fits. */
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
