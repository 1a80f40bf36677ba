/** Which bytes of a file a `Range` header asks for (RFC 9110, section 14). Pure. */

/** Both ends are included. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/** Undefined: the whole file, also for several ranges and for what is malformed, which a server may ignore. */
export function parseRange(header: string | undefined, sizeBytes: number): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header?.trim() ?? '');
  if (match === null) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const bytes = Number(last);
    return bytes === 0 || sizeBytes === 0 ? 'unsatisfiable' : { from: Math.max(0, sizeBytes - bytes), to: sizeBytes - 1 };
  }
  const from = Number(first);
  if (last !== '' && Number(last) < from) return undefined;
  if (from >= sizeBytes) return 'unsatisfiable';
  return { from, to: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
}
