/** Runs the tools of vendors. They may take seconds, or hang where a driver does, so the last answer counts until there is a new one. */
import { execFile } from 'node:child_process';

export type Command = readonly [string, ...string[]];

/** Runs a command to its end and returns what it printed; undefined if it is not installed or failed. */
export type RunTool = (command: Command) => Promise<string | undefined>;

export interface Answer {
  readonly command: Command;
  readonly output: string;
}

/** Asks the first of these commands that succeeds. Undefined if none does, or if there is no answer yet. */
export type AskTool = (alternatives: readonly [Command, ...Command[]]) => Promise<Answer | undefined>;

export interface ToolOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** In milliseconds, on a clock that is never set. */
  readonly now: () => number;
  /** Runs one command to its end. Default: as a process. */
  readonly run?: RunTool;
}

/** Memory of a GPU changes with every workload. */
const FRESH_MS = 5000;
/** A tool that failed, or is not installed, is tried again more rarely. */
const RETRY_MS = 60_000;
/** `nvidia-smi` needs some seconds where no process keeps the driver loaded. */
const KILL_AFTER_MS = 20_000;
/** How long the first caller waits for the first answer. */
const WAIT_MS = 3000;
const MAX_OUTPUT_BYTES = 256 * 1024;
/** WSL has `nvidia-smi` here. https://docs.nvidia.com/cuda/wsl-user-guide/index.html */
const ALSO_IN = '/usr/lib/wsl/lib';

interface Asked {
  answer: Answer | undefined;
  /** Undefined before it was asked for the first time. */
  running: Promise<void> | undefined;
  endedAt: number | undefined;
}

export function createMachineTools({ env, now, run = runProcess(env) }: ToolOptions): AskTool {
  const asked = new Map<string, Asked>();

  const firstAnswer = async (alternatives: readonly Command[]): Promise<Answer | undefined> => {
    for (const command of alternatives) {
      const output = await run(command).catch(() => undefined);
      if (output !== undefined) return { command, output };
    }
    return undefined;
  };

  return async (alternatives) => {
    const key = alternatives[0].join(' ');
    const known = asked.get(key);
    const tool: Asked = known ?? { answer: undefined, running: undefined, endedAt: undefined };
    asked.set(key, tool);
    const freshFor = tool.answer === undefined ? RETRY_MS : FRESH_MS;
    const isFresh = tool.endedAt !== undefined && now() - tool.endedAt < freshFor;
    if (!isFresh) {
      tool.running ??= firstAnswer(alternatives).then((answer) => {
        tool.answer = answer;
        tool.endedAt = now();
        tool.running = undefined;
      });
    }
    if (known === undefined && tool.running !== undefined) await Promise.race([tool.running, unreferencedPause(WAIT_MS)]);
    return tool.answer;
  };
}

function runProcess({ PATH = '', HOME }: ToolOptions['env']): RunTool {
  // Programs of the user's own directories are not started, and no shell is involved.
  const options = {
    cwd: '/',
    env: { PATH: `${PATH}:/usr/bin:/usr/sbin:${ALSO_IN}`, HOME, LC_ALL: 'C' },
    timeout: KILL_AFTER_MS,
    killSignal: 'SIGKILL' as const,
    maxBuffer: MAX_OUTPUT_BYTES,
  };
  return async ([program, ...args]) =>
    new Promise((resolve) => {
      execFile(program, args, options, (error, stdout) => resolve(error === null ? stdout : undefined));
    });
}

async function unreferencedPause(ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
