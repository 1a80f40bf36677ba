/** Runs the tools of vendors. They may take seconds, or hang where a driver does, so the last answer counts until there is a new one. */
import { execFile } from 'node:child_process';

/** Returns what the command printed; undefined if it is not installed, failed, or has not answered yet. */
export type RunTool = (command: readonly [string, ...string[]]) => Promise<string | undefined>;

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
/** How long a caller waits for the first answer. */
const WAIT_MS = 3000;
const MAX_OUTPUT_BYTES = 256 * 1024;
/** WSL has `nvidia-smi` here. https://docs.nvidia.com/cuda/wsl-user-guide/index.html */
const ALSO_IN = '/usr/lib/wsl/lib';

interface Asked {
  answer: string | undefined;
  answeredAt: number | undefined;
  running: Promise<void> | undefined;
}

export function createMachineTools({ env, now, run = runProcess(env) }: ToolOptions): RunTool {
  const asked = new Map<string, Asked>();
  return async (command) => {
    const key = command.join(' ');
    const tool: Asked = asked.get(key) ?? { answer: undefined, answeredAt: undefined, running: undefined };
    asked.set(key, tool);
    const freshFor = tool.answer === undefined ? RETRY_MS : FRESH_MS;
    if (tool.answeredAt !== undefined && now() - tool.answeredAt < freshFor) return tool.answer;
    tool.running ??= run(command).then((answer) => {
      tool.answer = answer;
      tool.answeredAt = now();
      tool.running = undefined;
    });
    if (tool.answeredAt === undefined) await Promise.race([tool.running, unreferencedPause(WAIT_MS)]);
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
