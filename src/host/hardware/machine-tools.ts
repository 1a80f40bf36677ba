/**
 * Runs vendor tools. They may take seconds or hang with their driver, so the last output is used until there is a new
 * one.
 */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

export type Command = readonly [string, ...string[]];

/** Returns the output of a command; undefined if it is missing or failed. */
export type RunTool = (command: Command) => Promise<string | undefined>;

export interface Answer {
  readonly command: Command;
  readonly output: string;
}

/** Runs the first command that succeeds. Undefined if none does, or none has finished yet. */
export type AskTool = (alternatives: readonly [Command, ...Command[]]) => Promise<Answer | undefined>;

export interface ToolOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds of a monotonic clock. Default: that of the process. */
  readonly now?: () => number;
  /** Default: runs a process. */
  readonly run?: RunTool;
}

/** GPU memory changes with every workload. */
const FRESH_MS = 5000;
/** Failed or missing tools are retried less often. */
const RETRY_MS = 60_000;
/** `nvidia-smi` takes seconds if no process keeps the driver loaded. */
const KILL_AFTER_MS = 20_000;
/** Wait of the first caller for the first output. */
const WAIT_MS = 3000;
const MAX_OUTPUT_BYTES = 256 * 1024;
/** WSL has `nvidia-smi` here. https://docs.nvidia.com/cuda/wsl-user-guide/index.html */
const ALSO_IN = '/usr/lib/wsl/lib';

interface Asked {
  answer: Answer | undefined;
  /** Undefined unless running. */
  running: Promise<void> | undefined;
  endedAt: number | undefined;
}

export function createMachineTools({ env, now = () => performance.now(), run = createToolRunner(env) }: ToolOptions): AskTool {
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
    if (known === undefined && tool.running !== undefined) await Promise.race([tool.running, sleep(WAIT_MS, undefined, { ref: false })]);
    return tool.answer;
  };
}

/** A command that takes longer than `killAfterMs` is killed, and counts as failed. */
export function createToolRunner({ PATH = '', HOME }: ToolOptions['env'], killAfterMs = KILL_AFTER_MS): RunTool {
  // Never starts programs from directories of the user, and never a shell.
  const options = {
    cwd: '/',
    env: { PATH: `${PATH}:/usr/bin:/usr/sbin:${ALSO_IN}`, HOME, LC_ALL: 'C' },
    timeout: killAfterMs,
    killSignal: 'SIGKILL' as const,
    maxBuffer: MAX_OUTPUT_BYTES,
  };
  return async ([program, ...args]) =>
    new Promise((resolve) => {
      execFile(program, args, options, (error, stdout) => resolve(error === null ? stdout : undefined));
    });
}
