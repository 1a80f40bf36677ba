/** The service's own log: JSON lines for a journal, or short lines for a person who ran `npm start`. Values never hold secrets. */
import { pino } from 'pino';

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

const ORDER: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];

/** One JSON object a line on standard output. */
export function createJsonLog(level: LogLevel): Log {
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } });
  return {
    debug: (message, fields = {}) => logger.debug(fields, message),
    info: (message, fields = {}) => logger.info(fields, message),
    warn: (message, fields = {}) => logger.warn(fields, message),
    error: (message, fields = {}) => logger.error(fields, message),
  };
}

/** `primary   starting → warming`: the slot's name in a column of its own, no time, no fields. */
export function createPlainLog(level: LogLevel, write: (line: string) => void): Log {
  const at = (own: LogLevel) => (message: string, fields: LogFields = {}) => {
    if (ORDER.indexOf(own) < ORDER.indexOf(level)) return;
    const mark = own === 'error' || own === 'warn' ? `${own}: ` : '';
    write(`  ${String(fields['slot'] ?? '').padEnd(8)} ${mark}${message}`);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
