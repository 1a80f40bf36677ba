/** The service's own log: JSON lines for a journal, or short lines for a person who ran `npm start`. Fields never hold secrets. */
import { pino } from 'pino';

export type LogFields = Readonly<Record<string, unknown>>;

/** Fields first, as pino has it. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** What adapters say: news, and what went wrong. */
export type SourceLog = Pick<Log, 'info' | 'warn'>;

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

const ORDER: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];

/** One JSON object a line on standard output. */
export function createJsonLog(level: LogLevel): Log {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } });
}

/** `primary   starting → warming`: the slot's name in a column of its own, no time, no other fields. */
export function createPlainLog(level: LogLevel, write: (line: string) => void): Log {
  const at = (own: LogLevel) => (fields: LogFields, message: string) => {
    if (ORDER.indexOf(own) < ORDER.indexOf(level)) return;
    const { slot } = fields;
    const mark = own === 'error' || own === 'warn' ? `${own}: ` : '';
    write(`  ${(typeof slot === 'string' ? slot : '').padEnd(8)} ${mark}${message}`);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
