/** Exit codes and failures of `svcctl`. Scripts of users rely on the codes. */

export const EXIT = { done: 0, failed: 1, different: 2, timedOut: 3, usage: 64 } as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Shown by `--help`, the man page and the reference page. */
export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  [EXIT.done]: 'Success',
  [EXIT.failed]: 'Failure',
  [EXIT.different]: '"plan" or "diff" found differences',
  [EXIT.timedOut]: 'Timeout',
  // EX_USAGE of sysexits.h.
  [EXIT.usage]: 'Usage error',
};

/** Ends a verb with an error line and, if `hint` is set, a second line with the fix. */
export class CliFailure extends Error {
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;
  /** The code of an API error. */
  readonly code: string | undefined;

  constructor(message: string, options: Partial<Pick<CliFailure, 'exitCode' | 'hint' | 'code' | 'cause'>> = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CliFailure';
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.hint = options.hint;
    this.code = options.code;
  }
}

export const usageFailure = (message: string, hint?: string): CliFailure => new CliFailure(message, { exitCode: EXIT.usage, hint });
