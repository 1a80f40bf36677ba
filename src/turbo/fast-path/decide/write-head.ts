/** The head of an answer as Node writes it: the headers as given, then `Date`, `Connection` and `Keep-Alive`. Pure. */

export interface HeadFacts {
  readonly status: number;
  readonly reason: string;
  /** Names and values in turn that were set earlier. One of the same name in `headers` replaces them. */
  readonly own: readonly string[];
  /** A list has names and values in turn, and is trusted: a parser or a translation has checked it. */
  readonly headers: readonly string[] | Readonly<Record<string, string | number>>;
}

export interface ConnectionFacts {
  readonly date: string;
  readonly keepAlive: boolean;
  readonly keepAliveSeconds: number;
}

/** Node refuses the same characters: a line end in a value would be read as another header. */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Throws a `TypeError` for a header that is not well-formed, except in a list. */
export function responseHead({ status, reason, own, headers }: HeadFacts, facts: ConnectionFacts) {
  const { keepAlive } = facts;
  const given = isList(headers) ? headers : checked(Object.entries(headers).flatMap(([name, value]) => [name, String(value)]));
  const all = own.length === 0 ? given : [...checked(ownOf(own, given)), ...given];
  let lines = '';
  let isDated = false;
  const hasBody = mayHaveBody(status);
  let isDelimited = !hasBody;
  let connection: string | undefined;
  for (let index = 0; index < all.length; index += 2) {
    const name = all[index] ?? '';
    const value = all[index + 1] ?? '';
    lines += `${name}: ${value}\r\n`;
    if (isSame(name, 'date')) isDated = true;
    else if (isSame(name, 'connection')) connection = value.toLowerCase();
    else if (isSame(name, 'content-length') || isSame(name, 'transfer-encoding')) isDelimited = true;
  }
  const isLast = connection === 'close' || !keepAlive || !isDelimited;
  return { text: headOf({ status, reason, lines, isDated, hasConnection: connection !== undefined, isLast }, facts), isLast, hasBody };
}

interface HeadParts extends Pick<HeadFacts, 'status' | 'reason'>, Record<'isDated' | 'hasConnection' | 'isLast', boolean> {
  readonly lines: string;
}

/** `lines`: each header with its line end. */
export function headOf(
  { status, reason, lines, isDated, hasConnection, isLast }: HeadParts,
  { date, keepAliveSeconds }: Pick<ConnectionFacts, 'date' | 'keepAliveSeconds'>,
): string {
  const dated = isDated ? '' : `Date: ${date}\r\n`;
  const kept = isLast ? 'Connection: close\r\n' : `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveSeconds}\r\n`;
  return `HTTP/1.1 ${status} ${reason}\r\n${lines}${dated}${hasConnection ? '' : kept}\r\n`;
}

export const mayHaveBody = (status: number): boolean => status !== 204 && status !== 304;

const isSame = (name: string, known: string): boolean => name.length === known.length && name.toLowerCase() === known;

function checked(headers: readonly string[]): readonly string[] {
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = [headers[index], headers[index + 1]];
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError(`The header "${name}" is malformed`);
  }
  return headers;
}

function ownOf(own: readonly string[], given: readonly string[]): readonly string[] {
  const replaced = new Set(given.filter((_text, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  return own.filter((_text, index) => !replaced.has((own[index - (index % 2)] ?? '').toLowerCase()));
}

const isList = (headers: HeadFacts['headers']): headers is readonly string[] => Array.isArray(headers);
