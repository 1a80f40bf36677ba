/**
 * The service's own log: JSON lines for a journal or a collector, or short lines for a person at a terminal. Fields
 * never contain secrets.
 */
import { fstatSync } from 'node:fs';
import { pino } from 'pino';

type LogMethod = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** Fields come first, as in pino. */
export interface Log {
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
}

/** The levels that adapters use. */
export type SourceLog = Pick<Log, 'info' | 'warn'>;

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LEVELS)[number];

/** How much is kept while standard output accepts nothing: its disk is full, or its terminal was closed. */
const UNWRITTEN_BYTES = 1024 * 1024;

/** Priorities of syslog, by pino's numbers of levels. */
const priorityOf = (level: number): number => (level >= 50 ? 3 : level >= 40 ? 4 : level >= 30 ? 6 : 7);

/** Whether a descriptor leads to systemd's journal, which takes the priority of a line from a prefix such as `<4>`. */
export function leadsToJournal({ JOURNAL_STREAM: journal }: Readonly<Record<string, string | undefined>>, descriptor: number): boolean {
  if (journal === undefined) return false;
  const { dev, ino } = fstatSync(descriptor);
  return journal === `${dev}:${ino}`;
}

/**
 * Writes one JSON object per line to standard output, with its priority for a journal. A log that cannot be written
 * ends nothing: the service works on, and later lines may get through.
 */
export function createJsonLog(level: LogLevel, toJournal = false): Log {
  const output = pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_BYTES });
  output.on('error', () => undefined);
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  if (!toJournal) return pino(options, output);
  const journal = {
    [Symbol.for('pino.metadata')]: true,
    // Set by pino before each line.
    lastLevel: 0,
    write(line: string) {
      output.write(`<${priorityOf(this.lastLevel)}>${line}`);
    },
  };
  return pino(options, journal);
}

/**
 * Writes lines such as `primary   starting → warming`: the slot's name in its own column, without the time, and
 * without the other fields unless `withFields`.
 */
export function createPlainLog(minimum: LogLevel, write: (line: string) => void, withFields = false): Log {
  const at =
    (level: LogLevel): LogMethod =>
    (fields, message) => {
      if (LEVELS.indexOf(level) < LEVELS.indexOf(minimum)) return;
      const { slot, ...others } = fields;
      const prefix = level === 'error' || level === 'warn' ? `${level}: ` : '';
      const more = withFields ? Object.entries(others).map(([key, value]) => ` ${key}=${JSON.stringify(value)}`) : [];
      write(`  ${(typeof slot === 'string' ? slot : '').padEnd(8)} ${prefix}${message}${more.join('')}`);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
