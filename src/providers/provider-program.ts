/** The program of a provider: how it is found without containers, what it can compute with, and which flags it has. */
import type { ProgramBackends } from '../schema/status/hardware.ts';
import type { SlotSpec } from '../schema/slot/slot-spec.ts';
import type { Result } from '../schema/words/failure.ts';
import type { SlotName } from '../schema/words/names.ts';

export interface ProgramHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** State directory of the service. A provider may create one directory of its own in it. */
  readonly stateDir: string;
  readonly onProgress: (message: string) => void;
}

export interface HostProgram {
  /** Returns its path and first arguments. May install it. Fails with `ProgramMissing`, which says what to install. */
  resolve(signal: AbortSignal): Promise<Result<readonly [string, ...string[]]>>;
  /** Fails as `resolve` would. */
  describe(): Promise<
    Result<{
      readonly name: string;
      /** Installation that `resolve` would do first, as a clause. */
      readonly installs?: string;
    }>
  >;
  /** Returns the path of an installed program; installs nothing. */
  find?(): Promise<string | undefined>;
  /** Returns the program's backends; undefined: unknown. `devices` changes with the devices of the machine. */
  reportBackends?(devices: string): Promise<ProgramBackends | undefined>;
}

/** Flags of one build of a program, read from its help. Plain data, compared by value. */
export interface ProgramOptions {
  /** By name, with aliases. `words`: how many arguments follow the flag. */
  readonly flags: Readonly<Record<string, { readonly words: number; readonly about: string }>>;
  /** Flags that the program lists only to refuse them, with those that replace them. */
  readonly removed: Readonly<Record<string, readonly string[]>>;
}

/** How a program is asked for its flags before it is started. Every function is pure. */
export interface ProgramHelp {
  /** Arguments with which it prints its help and exits, also on a machine without its device. */
  readonly arguments: readonly string[];
  /** Undefined: not the help of this program. */
  parse(output: string): ProgramOptions | undefined;
  /** Why the program would refuse arguments of a slot, and the fix. */
  objection(args: readonly string[], options: ProgramOptions): string | undefined;
  /** Words that `startCmd` adds or leaves out by `options`: no drift after an update of the program. */
  readonly byBuild: ReadonlySet<string>;
}

/** How servers are told the keys of a slot that become flags. Every function is pure. */
export interface ExpressedKeys<Model> {
  /** Why arguments of the slot contradict a key, or why this build cannot express one, and the fix. */
  objection(spec: SlotSpec, options: ProgramOptions | undefined): string | undefined;
  /** What they make of the server, as lines: `draft: model "a" proposes …`. */
  describe(name: SlotName, spec: SlotSpec, model: Model): readonly string[];
  /** Paths whose requests can choose an adapter. */
  readonly adapterPaths: ReadonlySet<string>;
}
