/** Output of a verb. A terminal gets colours and a progress line that is redrawn; a pipe gets plain lines. */
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';

const COLOURS = { red: 31, green: 32, yellow: 33, grey: 90, bold: 1 } as const;
const BAR_WIDTH = 20;
type Colour = keyof typeof COLOURS;

export interface Progress {
  readonly text: string;
  /** A pipe gets a line only when this changes. */
  readonly step: string;
  /** Completed share, 0 to 1; drawn as a bar on a terminal. */
  readonly share?: number | undefined;
}

export type Terminal = ReturnType<typeof createTerminal>;

/** The used part of an output stream of a process. */
export type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

export interface TerminalStreams {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function createTerminal({ stdout, stderr, env }: TerminalStreams) {
  const isTty = stdout.isTTY === true;
  const painter = (enabled: boolean) => (colour: Colour, text: string) => (enabled ? `\u001B[${COLOURS[colour]}m${text}\u001B[0m` : text);
  const redraws = stderr.isTTY === true && env['TERM'] !== 'dumb';
  let lastProgress = '';
  /** Removes the progress line. */
  const endProgress = (): void => {
    if (redraws && lastProgress !== '') stderr.write('\r\u001B[K');
    lastProgress = '';
  };
  return {
    /** Whether standard output is a terminal. */
    isTty,
    /** Width of the terminal; `Infinity` for a pipe. */
    columns: isTty ? (stdout.columns ?? 80) : Number.POSITIVE_INFINITY,
    /** Writes a line to standard output. */
    line(text = ''): void {
      endProgress();
      stdout.write(`${text}\n`);
    },
    /** Writes to standard output without a line end. Resolves when the stream accepts more. */
    async write(text: string): Promise<void> {
      endProgress();
      if (!stdout.write(text)) await once(stdout, 'drain');
    },
    /** Writes a line to standard error. */
    note(text: string): void {
      endProgress();
      stderr.write(`${text}\n`);
    },
    /** Replaces the progress line of a terminal; prints one line per step to a pipe. */
    progress({ text, step, share }: Progress): void {
      const line = redraws ? `${barOf(share)}${text}`.slice(0, (stderr.columns ?? 80) - 1) : step;
      if (line === lastProgress) return;
      stderr.write(redraws ? `\r\u001B[K${line}` : `${text}\n`);
      lastProgress = line;
    },
    endProgress,
    /** Colours text for standard output. */
    paint: painter(wantsColours(env, isTty)),
    /** Colours text for standard error. */
    paintError: painter(wantsColours(env, stderr.isTTY === true)),
  };
}

function barOf(share: number | undefined): string {
  if (share === undefined) return '';
  const full = Math.round(Math.min(1, Math.max(0, share)) * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'.'.repeat(BAR_WIDTH - full)}] `;
}

function wantsColours(env: Readonly<Record<string, string | undefined>>, isTty: boolean): boolean {
  if ((env['NO_COLOR'] ?? '') !== '') return false;
  if (!['', '0'].includes(env['FORCE_COLOR'] ?? '')) return true;
  return isTty && env['TERM'] !== 'dumb';
}

/** Removes control characters of foreign text, which could control the terminal. Keeps tabs and line feeds. */
export function withoutControls(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what is removed
  return stripVTControlCharacters(text).replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '');
}
