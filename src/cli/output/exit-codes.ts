/** How `svcctl` ends. Part of the contract with users' scripts. */

export const EXIT = {
  done: 0,
  failed: 1,
  /** `plan` and `diff` found differences. */
  different: 2,
  timedOut: 3,
  /** Wrong usage, after BSD's sysexits. */
  usage: 64,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a verb with one clear line, and a second one that says what to do, where there is something. */
export class CliFailure extends Error {
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;

  constructor(
    message: string,
    options: { readonly hint?: string | undefined; readonly exitCode?: ExitCode; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CliFailure';
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.hint = options.hint;
  }
}

export function usageFailure(message: string, hint?: string): CliFailure {
  return new CliFailure(message, { exitCode: EXIT.usage, hint });
}
