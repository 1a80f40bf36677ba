/** Where a verb writes. A terminal gets colours and lines that redraw; a pipe gets plain lines, one a fact. */
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';

const COLOURS = { red: 31, green: 32, yellow: 33, blue: 34, cyan: 36, grey: 90, bold: 1 } as const;
const BAR_WIDTH = 20;
export type Colour = keyof typeof COLOURS;

export interface Progress {
  readonly text: string;
  /** What must change for a pipe to get another line. */
  readonly step: string;
  /** 0 to 1, where it is known: becomes a bar on a terminal. */
  readonly share?: number | undefined;
}

export interface Terminal {
  /** Whether standard output is a terminal. */
  readonly isTty: boolean;
  /** Columns of a terminal; `Infinity` for a pipe, which cuts nothing. */
  readonly columns: number;
  /** Writes to standard output, with a line end. */
  line(text?: string): void;
  /** Writes to standard output as is. Resolves once there is room for more. */
  write(text: string): Promise<void>;
  /** Writes to standard error, with a line end. */
  note(text: string): void;
  /** Replaces the last progress line on a terminal; elsewhere prints one line a step. */
  progress(progress: Progress): void;
  /** Removes the progress line. */
  endProgress(): void;
  /** Colours for standard output. */
  paint(colour: Colour, text: string): string;
  /** Colours for standard error. */
  paintError(colour: Colour, text: string): string;
  /** What `print` writes to standard output by `line` and `write`, instead of writing it. */
  capture(print: () => Promise<void>): Promise<string>;
  /** Clears the screen of a terminal before a redraw; nothing elsewhere. */
  clear(): void;
}

/** The parts of a process's output streams that are used. */
export type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

export interface TerminalStreams {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function createTerminal({ stdout, stderr, env }: TerminalStreams): Terminal {
  const isTty = stdout.isTTY === true;
  const paintWith = (wanted: boolean) => (colour: Colour, text: string) => (wanted ? `\u001B[${COLOURS[colour]}m${text}\u001B[0m` : text);
  const redraws = stderr.isTTY === true && env['TERM'] !== 'dumb';
  let shown = '';
  let captured: string[] | undefined;
  const endProgress = (): void => {
    if (redraws && shown !== '') stderr.write('\r\u001B[K');
    shown = '';
  };
  return {
    isTty,
    columns: isTty ? (stdout.columns ?? 80) : Number.POSITIVE_INFINITY,
    line(text = '') {
      if (captured !== undefined) return void captured.push(`${text}\n`);
      endProgress();
      stdout.write(`${text}\n`);
    },
    async write(text) {
      if (captured !== undefined) captured.push(text);
      else if (!stdout.write(text)) await once(stdout, 'drain');
    },
    note(text) {
      endProgress();
      stderr.write(`${text}\n`);
    },
    progress({ text, step, share }) {
      const line = redraws ? `${barOf(share)}${text}`.slice(0, (stderr.columns ?? 80) - 1) : step;
      if (line === shown) return;
      stderr.write(redraws ? `\r\u001B[K${line}` : `${text}\n`);
      shown = line;
    },
    endProgress,
    async capture(print) {
      const texts: string[] = [];
      captured = texts;
      await print().finally(() => (captured = undefined));
      return texts.join('');
    },
    paint: paintWith(wantsColours(env, isTty)),
    paintError: paintWith(wantsColours(env, stderr.isTTY === true)),
    clear() {
      if (isTty) stdout.write('\u001B[H\u001B[2J');
    },
  };
}

function barOf(share: number | undefined): string {
  if (share === undefined) return '';
  const full = Math.round(Math.min(1, Math.max(0, share)) * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'.'.repeat(BAR_WIDTH - full)}] `;
}

function wantsColours(env: Readonly<Record<string, string | undefined>>, isTty: boolean): boolean {
  if ((env['NO_COLOR'] ?? '') !== '') return false;
  const force = env['FORCE_COLOR'];
  if (force !== undefined && force !== '' && force !== '0') return true;
  return isTty && env['TERM'] !== 'dumb';
}

/** What came from a workload or a server, without anything that could steer the terminal. */
export function harmless(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what must go
  return stripVTControlCharacters(text).replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '');
}
