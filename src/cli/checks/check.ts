/** The result of one check of `svcctl doctor`. A check never throws and changes nothing. */
export interface Check {
  readonly name: string;
  readonly result: 'ok' | 'warn' | 'fail';
  readonly found: string;
  /** What to do about it. Empty if there is nothing to do. */
  readonly hint: string;
}

export const ok = (name: string, found: string): Check => ({ name, result: 'ok', found, hint: '' });
export const warn = (name: string, found: string, hint: string): Check => ({ name, result: 'warn', found, hint });
export const fail = (name: string, found: string, hint: string): Check => ({ name, result: 'fail', found, hint });
