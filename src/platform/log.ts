/**
 * The service's own log: JSON lines for a journal or a collector, or short lines for a person at a terminal. Fields
 * never contain secrets.
 */
import { pino, type DestinationStream } from 'pino';

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

const REPEAT_MS = 60_000;
const MOST_CAUSES = 1000;

/** Lines with a reason appear once a minute for each cause: names in quotes and numbers make no other cause. */
export function limitRepeats(log: Log, now: () => number): Log {
  const causes = new Map<string, { readonly at: number; omitted: number }>();
  const limited =
    (level: keyof Log): LogMethod =>
    (fields, message) => {
      if (fields['reason'] === undefined) return log[level](fields, message);
      const cause = [level, fields['reason'], message, fields['error']].join('\n').replaceAll(/"[^"]*"|\d+/g, '');
      const last = causes.get(cause);
      if (last !== undefined && now() - last.at < REPEAT_MS) return void (last.omitted += 1);
      if (causes.size >= MOST_CAUSES) causes.clear();
      causes.set(cause, { at: now(), omitted: 0 });
      log[level](last?.omitted ? { ...fields, omitted: last.omitted } : fields, message);
    };
  return { debug: limited('debug'), info: limited('info'), warn: limited('warn'), error: limited('error') };
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LEVELS)[number];

/** How much is kept while standard output accepts nothing: its disk is full, or its terminal was closed. */
const UNWRITTEN_BYTES = 1024 * 1024;

/**
 * Writes one JSON object per line to standard output. A log that cannot be written ends nothing: the service works on,
 * and later lines may get through. `wrap` may change lines.
 */
export function createJsonLog(level: LogLevel, wrap = (output: DestinationStream): DestinationStream => output): Log {
  const output = pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_BYTES });
  output.on('error', () => undefined);
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(options, wrap(output));
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
