/** The program of a provider on a machine without containers: how it is found, and what it can compute with. */
import type { ProgramBackends } from '../schema/status/hardware.ts';
import type { Result } from '../schema/words/failure.ts';

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
  /** Returns the program's backends; undefined: unknown. `devices` changes with the devices of the machine. */
  reportBackends?(devices: string): Promise<ProgramBackends | undefined>;
}
